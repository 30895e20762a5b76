package engine

import "slices"

// onArrival returns the fault that strikes r before it is queued, or nil: the request's own, else the first that was armed.
func (e *Engine) onArrival(now Time, r *Request) *Fault {
	if e.crashed {
		return nil
	}
	strikes := func(f *Fault) bool { return f.Kind.fatal() && f.AfterTokens == 0 && f.armed(now) }
	if f := r.ownFault(); f != nil && strikes(f) {
		return f
	}
	if i := slices.IndexFunc(e.faults, strikes); i >= 0 {
		return e.faults[i]
	}
	return nil
}

// book notes the faults that will strike r while it runs.
func (e *Engine) book(now Time, r *Request) {
	if f := r.ownFault(); f != nil {
		r.book(f)
	}
	for _, f := range e.faults {
		if f.vacant(now) {
			r.book(f)
		}
	}
	r.setBound()
}

// book takes f in order of the tokens before it. A request has one end, and must be long enough.
func (r *Request) book(f *Fault) {
	doomed := slices.ContainsFunc(r.faults, func(f *Fault) bool { return f.Kind.fatal() })
	if f.Kind > FaultCrash || f.AfterTokens >= r.length || f.Kind.fatal() && doomed {
		return
	}
	place := len(r.faults)
	for place > 0 && r.faults[place-1].AfterTokens > f.AfterTokens {
		place--
	}
	r.faults = slices.Insert(r.faults, place, f)
	f.booked++
}

// setBound makes r's next stop the next fault, or its end.
func (r *Request) setBound() {
	r.bound = r.length
	if len(r.faults) > 0 {
		r.bound = r.faults[0].AfterTokens
	}
}

// unbook frees the places of r, which is about to end, in the faults that have not struck it.
func (r *Request) unbook() {
	for _, f := range r.faults {
		f.booked--
	}
	r.faults = nil
}

// passFault goes on to what comes after r's next fault.
func (r *Request) passFault() {
	r.faults[0].booked--
	r.faults = r.faults[1:]
	r.setBound()
}

// strike has r's next fault strike it, in place of the chunk that is due. One that is over meanwhile is passed over. Before
// an end leaves what r's reader has yet to take.
func (e *Engine) strike(now Time, r *Request) {
	f := r.faults[0]
	switch {
	case e.crashed:
	case !f.armed(now):
		r.passFault()
		e.fallDue(now, r)
	case f.Kind == FaultStall:
		r.passFault()
		e.apply(f)
		r.due += e.scaled(f.Delay)
		e.schedule(now, r)
	case r.held:
		e.stopDecoding(r)
		r.state, r.failing = finishing, true
	default:
		e.failRunning(r)
	}
}

// failRunning has the fault that has struck r end it, or everything.
func (e *Engine) failRunning(r *Request) {
	f := r.faults[0]
	e.apply(f)
	if f.Kind == FaultCrash {
		e.crashed = true
		return
	}
	r.unbook()
	e.leaveSlot(r)
	delete(e.requests, r.ID)
	e.fail(r, f.Kind.finish())
}
