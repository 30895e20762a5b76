package engine

// round is one round of prefill: a budget of prompt tokens that lasts for one inter-token latency, the step of a real
// engine. Its size and end are fixed when it starts.
type round struct {
	open bool
	end  Time
	left uint64
}

// unlimited says that prompts take no tokens from a budget: nothing decodes that they would hold up, steps take no time,
// or a latency trace brings its own times.
func (e *Engine) unlimited() bool {
	return e.decoding == 0 || e.params.ITL == 0 || e.cfg.Latency != nil
}

// prefill starts the prompt of a request that was just admitted.
func (e *Engine) prefill(now Time, r *Request) {
	if e.unlimited() {
		r.unfilled = 0
		e.endPrefill(now, now, r)
		return
	}
	if !e.round.open {
		e.openRound(now)
	}
	r.state = prefilling
	if e.take(r) {
		e.endPrefill(now, now, r)
		return
	}
	e.prefilling = append(e.prefilling, r)
}

// runRounds goes through the rounds that have ended by now, one after the other, and ends all prefill where it has
// become unlimited.
func (e *Engine) runRounds(now Time) {
	if e.unlimited() {
		e.endRounds(now)
		return
	}
	for e.round.open && e.round.end <= now {
		if e.dropEnded(); len(e.prefilling) == 0 {
			e.round.open = false
			return
		}
		start := e.round.end
		e.openRound(start)
		e.filter(func(r *Request) bool {
			if !e.take(r) {
				return true
			}
			e.endPrefill(now, start, r)
			return false
		})
	}
}

func (e *Engine) endRounds(now Time) {
	e.round.open = false
	e.filter(func(r *Request) bool {
		e.setUnfilled(r, 0)
		e.endPrefill(now, now, r)
		return false
	})
}

func (e *Engine) openRound(start Time) {
	e.round.open = true
	e.round.end = start + max(1, e.scaled(e.params.underLoad(e.params.ITL, e.running)))
	e.round.left = max(1, e.params.MaxBatchedTokens-min(e.decoding, e.params.MaxBatchedTokens))
}

// take gives r its part of the present round and reports whether its prompt is finished.
func (e *Engine) take(r *Request) bool {
	n := min(e.capped(r.unfilled), e.round.left)
	e.round.left -= n
	e.setUnfilled(r, r.unfilled-n)
	return r.unfilled == 0
}

// setUnfilled keeps the backlog in step with r.
func (e *Engine) setUnfilled(r *Request, n uint64) {
	r.unfilled = n
	e.backlog -= r.share
	r.share = e.capped(n)
	e.backlog += r.share
}

func (e *Engine) capped(n uint64) uint64 {
	if limit := e.cfg.LongPrefillThreshold; limit > 0 {
		return min(n, limit)
	}
	return n
}

// endPrefill makes the first chunk due: at the later of the request's own first-token time and the end of its prefill.
func (e *Engine) endPrefill(now, end Time, r *Request) {
	r.due = max(r.ready, end)
	e.schedule(now, r)
}

// dropEnded takes the requests that were aborted out of the prefilling list.
func (e *Engine) dropEnded() { e.filter(func(*Request) bool { return true }) }

// filter keeps the prefilling requests that keep says, in order, and drops those that are gone.
func (e *Engine) filter(keep func(*Request) bool) {
	rest := e.prefilling[:0]
	for _, r := range e.prefilling {
		if r.state != gone && keep(r) {
			rest = append(rest, r)
		}
	}
	clear(e.prefilling[len(rest):])
	e.prefilling = rest
}
