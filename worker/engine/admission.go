package engine

// hasRoom says that one more request may be admitted: a slot is free, and the prompt tokens still to be prefilled and
// one for each decoding request are below the token budget. The candidate itself may overshoot the budget.
func (e *Engine) hasRoom() bool {
	return !e.pause.active && e.running < e.params.MaxSeqs && e.backlog+e.decoding < e.params.MaxBatchedTokens
}

// admit takes waiting requests in the order of the policy while there is room.
func (e *Engine) admit(now Time) {
	for e.hasRoom() {
		r := e.waiting.pop()
		if r == nil {
			return
		}
		switch {
		case r.length == 0:
			delete(e.requests, r.ID)
			e.refuse(r, NothingToDo)
		case !e.mayUse(r):
			e.block(r)
		default:
			e.start(now, r)
		}
	}
}

// start gives r a slot, pins its pace and begins its prefill.
func (e *Engine) start(now Time, r *Request) {
	e.running++
	e.admitting++
	r.turn = e.admitting
	r.Admitted = now
	e.takeAdapter(r)
	e.grow(r, max(1, r.PromptTokens))
	r.pace = e.paramsFor(r)
	r.ready = now + e.firstTokenDelay(r)
	r.unfilled = max(1, r.PromptTokens)
	e.sink.Admit(r)
	e.prefill(now, r)
}

// Abort ends the requests with these ids; ids that are not in use are passed over. Slots that come free are given away
// in the next step.
func (e *Engine) Abort(now Time, ids []string) {
	for _, id := range ids {
		if r := e.requests[id]; r != nil {
			e.abort(now, r, Aborted)
		}
	}
}

// AbortClient ends every request of one client, in order of arrival, and forgets what is held for it.
func (e *Engine) AbortClient(now Time, client uint32) {
	e.abortWhere(now, Aborted, func(r *Request) bool { return r.Client == client })
	e.Release(client)
}

// Drain makes the engine refuse new requests from now on. Those it has go on.
func (e *Engine) Drain() { e.draining = true }

// AbortAll ends every request, in order of arrival, as a shutdown does.
func (e *Engine) AbortAll(now Time) {
	e.abortWhere(now, ShuttingDown, func(*Request) bool { return true })
}

func (e *Engine) abortWhere(now Time, cause Cause, match func(*Request) bool) {
	for _, r := range e.inOrderOfArrival(match) {
		e.abort(now, r, cause)
	}
}

func (e *Engine) abort(now Time, r *Request, cause Cause) {
	switch r.state {
	case queued:
		e.waiting.remove(r)
	case blocked:
		e.unblock(r)
	case prefilling:
		e.setUnfilled(r, 0)
	case paced:
		e.due.remove(r)
	}
	if r.state != queued && r.state != blocked {
		e.leaveSlot(r)
	}
	r.unbook()
	delete(e.requests, r.ID)
	e.refuse(r, cause)
	if r.held {
		e.drop(r)
	}
}

// leaveSlot gives back what a running request holds.
func (e *Engine) leaveSlot(r *Request) {
	e.running--
	e.stopDecoding(r)
	e.release(r)
	e.leaveAdapter(r)
}
