package engine

import "time"

// maxHeldTokens is the largest output in which held tokens leave.
const maxHeldTokens = 4096

// Step makes one step of the engine: it admits, hands over exactly one chunk of every request that is due, and admits
// again into what came free. It returns when the next step is wanted: now, if something is due already, or Never. A step
// at which nothing is due does no harm.
func (e *Engine) Step(now Time) Time {
	if len(e.faults) > 0 {
		e.dropFaults(now)
	}
	if e.crashed {
		return Never
	}
	if e.still.on {
		e.announceQueued()
		return e.faultEnd()
	}
	e.runRounds(now)
	e.admit(now)
	e.collectDue(now)
	e.stepReady(now)
	e.handHeld()
	e.runRounds(now)
	e.admit(now)
	e.announceQueued()
	return e.next(now)
}

// next is the earliest of all chunks, of the next prefill round and of the next end of a fault.
func (e *Engine) next(now Time) Time {
	if len(e.ready) > 0 || e.canHandHeld() {
		return now
	}
	next := min(e.faultEnd(), e.due.next())
	if len(e.prefilling) > 0 {
		next = min(next, e.round.end)
	}
	return next
}

// collectDue moves the requests whose leave time has come to the ready list.
func (e *Engine) collectDue(now Time) {
	from := len(e.ready)
	for leave := e.due.next(); leave <= now; leave = e.due.next() {
		before := len(e.ready)
		e.ready = e.due.take(e.ready)
		e.sink.Late(now-leave, len(e.ready)-before)
	}
	for _, r := range e.ready[from:] {
		r.state = inReady
	}
}

// stepReady takes one chunk from every ready request. Those that are due again at once are ready for the next step.
func (e *Engine) stepReady(now Time) {
	batch := e.ready
	e.ready = e.spare[:0]
	for i, r := range batch {
		if r.state == inReady {
			e.fallDue(now, r)
		}
		batch[i] = nil
	}
	e.spare = batch[:0]
}

// fallDue accounts for the chunk of r that is due, and schedules the one after it.
func (e *Engine) fallDue(now Time, r *Request) {
	if r.generated == r.bound {
		e.strike(now, r)
		return
	}
	n := min(e.cfg.ChunkSize, r.bound-r.generated)
	r.generated += n
	e.grow(r, n)
	last := r.generated == r.length
	if last {
		e.stopDecoding(r)
		r.state = finishing
	}
	if e.holds(r) {
		e.hold(r)
	} else {
		e.hand(r, n)
	}
	if !last {
		gap := e.gap(r)
		if r.due += gap; gap > 0 && r.due <= now {
			e.sink.Late(now-r.due, 1)
		}
		e.schedule(now, r)
	}
}

// hand gives the next n tokens of r to the sink, and ends r after its last one.
func (e *Engine) hand(r *Request, n uint64) {
	first := r.emitted == 0
	r.emitted += n
	tokens := e.generate(r, n)
	if r.emitted < r.length {
		if first && r.generated < r.length {
			r.decodes = true
			e.decoding++
		}
		e.sink.Chunk(r, tokens, NotFinished, first)
		return
	}
	e.counts.Completed++
	e.leaveSlot(r)
	delete(e.requests, r.ID)
	r.state = gone
	e.sink.Chunk(r, tokens, r.finish(), first)
}

func (e *Engine) stopDecoding(r *Request) {
	if r.decodes {
		r.decodes = false
		e.decoding--
	}
}

// schedule puts r where its due time belongs: what is due now is stepped next, the rest leaves on the grid.
func (e *Engine) schedule(now Time, r *Request) {
	if r.due <= now {
		r.state = inReady
		e.ready = append(e.ready, r)
		return
	}
	r.state = paced
	r.leave = roundUp(r.due, e.cfg.Granularity)
	e.due.add(r)
}

func roundUp(t Time, grid time.Duration) Time {
	if grid <= 0 {
		return t
	}
	if over := t % grid; over > 0 {
		return t + grid - over
	}
	return t
}
