package engine

// mayUse says that r can run beside the adapters in use: with one of them, with the base model, or as one more where the
// limit has room.
func (e *Engine) mayUse(r *Request) bool {
	limit := e.cfg.MaxLoras
	return r.Adapter == "" || limit == 0 || e.adapters[r.Adapter] > 0 || uint64(len(e.adapters)) < limit
}

func (e *Engine) takeAdapter(r *Request) {
	if r.Adapter != "" {
		e.adapters[r.Adapter]++
	}
}

// leaveAdapter lets those try again who waited for an adapter's end.
func (e *Engine) leaveAdapter(r *Request) {
	if r.Adapter == "" {
		return
	}
	if e.adapters[r.Adapter]--; e.adapters[r.Adapter] > 0 {
		return
	}
	delete(e.adapters, r.Adapter)
	for _, b := range e.blocked {
		b.state = queued
		e.waiting.push(b)
	}
	clear(e.blocked)
	e.blocked = e.blocked[:0]
}

// block sets r aside until an adapter is free. It keeps its place: order of arrival, or of priority, decides again then.
func (e *Engine) block(r *Request) {
	r.state, r.pos = blocked, len(e.blocked)
	e.blocked = append(e.blocked, r)
}

// unblock takes r out of those that were set aside.
func (e *Engine) unblock(r *Request) {
	last := len(e.blocked) - 1
	e.blocked[r.pos] = e.blocked[last]
	e.blocked[r.pos].pos = r.pos
	e.blocked[last] = nil
	e.blocked = e.blocked[:last]
}
