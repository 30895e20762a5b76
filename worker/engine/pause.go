package engine

import (
	"cmp"
	"slices"
)

// PauseMode is what a pause does to the requests an engine has.
type PauseMode uint8

// The modes of vLLM's pause and sleep calls.
const (
	PauseAbort PauseMode = iota // they are aborted
	PauseWait                   // running ones finish, waiting ones stay
	PauseKeep                   // all stand still until the engine resumes
)

type pause struct {
	active  bool // nothing is admitted
	frozen  bool // nothing is stepped
	refuses bool // arrivals end with an error
	since   Time // when it froze
}

// Pause stops admission, and with refuse makes arrivals fail. A second pause adds to the first.
func (e *Engine) Pause(now Time, mode PauseMode, refuse bool) {
	e.pause.active = true
	e.pause.refuses = e.pause.refuses || refuse
	switch mode {
	case PauseAbort:
		e.abortWhere(now, Aborted, func(*Request) bool { return true })
	case PauseKeep:
		if !e.pause.frozen {
			e.pause.frozen, e.pause.since = true, now
		}
	}
}

// Paused says that Pause was called and Resume was not.
func (e *Engine) Paused() bool { return e.pause.active }

// Resume ends a pause. Requests that stood still go on as if the time between had not been.
func (e *Engine) Resume(now Time) {
	if e.pause.frozen {
		e.postpone(now - e.pause.since)
	}
	e.pause = pause{}
}

// postpone moves everything that is to come by d.
func (e *Engine) postpone(d Time) {
	e.round.end += d
	for _, r := range e.requests {
		r.ready += d
		r.due += d
		if r.state == paced {
			e.due.remove(r)
			r.leave = roundUp(r.due, e.cfg.Granularity)
			e.due.add(r)
		}
	}
}

// inOrderOfArrival returns the requests that match, so that what is done to all of them is done in a fixed order.
func (e *Engine) inOrderOfArrival(match func(*Request) bool) []*Request {
	var list []*Request
	for _, r := range e.requests {
		if match(r) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *Request) int { return cmp.Compare(a.arrival, b.arrival) })
	return list
}
