package engine

// Add judges a request that has arrived and queues it for admission, which comes with the next step. A request that may
// not run ends here, through the sink.
func (e *Engine) Add(now Time, r *Request) {
	e.counts.Received++
	r.Arrived, r.state = now, arriving
	if r.Own != nil {
		e.arriveOwn(r)
	}
	switch {
	case e.draining:
		e.refuse(r, ShuttingDown)
	case e.requests[r.ID] != nil:
		e.refuse(r, Duplicate)
	case e.pause.refuses:
		e.refuse(r, PausedByClient)
	case e.tooLong(r):
		e.refuse(r, TooLong)
	default:
		e.receive(now, r)
	}
}

// receive queues a request that may run, unless a fault or the share of failures strikes it.
func (e *Engine) receive(now Time, r *Request) {
	if f := e.onArrival(now, r); f != nil {
		e.apply(f)
		if f.Kind != FaultCrash {
			e.fail(r, f.Kind.finish())
			return
		}
		e.crashed = true // with r in its queue
	} else if finish, fails := e.fails(r); fails {
		e.fail(r, finish)
		return
	}
	e.enqueue(now, r)
}

// fail counts and ends a request that a fault has struck.
func (e *Engine) fail(r *Request, finish Finish) {
	e.counts.Failed++
	e.end(r, finish, Injected)
}

// Reject counts and ends a request that the caller found a fault in.
func (e *Engine) Reject(r *Request, cause Cause) {
	e.counts.Received++
	e.refuse(r, cause)
}

func (e *Engine) enqueue(now Time, r *Request) {
	e.arrivals++
	r.arrival = e.arrivals
	r.seed = tokenSeed(e.cfg.Seed, e.cfg.Index, r.ID)
	r.plain = !r.Pooling && r.Forced == nil && r.Avoid == nil && r.Prompt == nil
	r.length = r.MaxTokens
	if r.StopAfter > 0 {
		r.length = min(r.length, r.StopAfter)
	}
	if r.Pooling {
		r.length = 1
	}
	r.bound = r.length
	if len(e.faults) > 0 || r.Own != nil {
		e.book(now, r)
	}
	r.state = queued
	e.requests[r.ID] = r
	e.waiting.push(r)
	if r.AbortAtOnce {
		e.abort(now, r, Aborted)
		return
	}
	e.newcomers = append(e.newcomers, r)
}

// announceQueued tells the sink of the arrivals since the step before that this step found no room for.
func (e *Engine) announceQueued() {
	for i, r := range e.newcomers {
		if r.state == queued || r.state == blocked {
			e.sink.Queued(r)
		}
		e.newcomers[i] = nil
	}
	e.newcomers = e.newcomers[:0]
}

// tooLong compares without adding, as both numbers are a client's.
func (e *Engine) tooLong(r *Request) bool {
	limit := e.params.MaxModelLen
	return limit > 0 && (r.PromptTokens > limit || r.MaxTokens > limit-r.PromptTokens)
}

// fails draws only while failures are switched on, and from a stream that nothing else reads.
func (e *Engine) fails(r *Request) (finish Finish, fails bool) {
	p, random := e.paramsFor(r), e.failures
	if r.Own != nil && r.Own.Failures {
		random = r.random
	}
	if p.FailureRate == 0 || random.Float64() >= p.FailureRate {
		return 0, false
	}
	return p.FailureTypes[random.IntN(len(p.FailureTypes))], true
}

// refuse ends a request that never got into the queue, or not out of it into a slot.
func (e *Engine) refuse(r *Request, cause Cause) {
	switch cause.Outcome() {
	case OutcomeCompleted:
		e.counts.Completed++
	case OutcomeFailed:
		e.counts.Failed++
	case OutcomeAborted:
		e.counts.Aborted++
	}
	e.end(r, cause.finish(), cause)
}

func (e *Engine) end(r *Request, finish Finish, cause Cause) {
	r.state = gone
	e.sink.End(r, finish, cause)
}
