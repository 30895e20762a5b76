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
}

// stillness is the time in which nothing is stepped, for whatever reasons.
type stillness struct {
	on    bool
	since Time
}

// Pause stops admission, and with refuse makes arrivals fail. A second pause adds to the first.
func (e *Engine) Pause(now Time, mode PauseMode, refuse bool) {
	e.pause.active = true
	e.pause.refuses = e.pause.refuses || refuse
	switch mode {
	case PauseAbort:
		e.abortWhere(now, Aborted, func(*Request) bool { return true })
	case PauseKeep:
		e.pause.frozen = true
		e.standStill(now)
	}
}

// Paused says that Pause was called and Resume was not.
func (e *Engine) Paused() bool { return e.pause.active }

// Resume ends a pause. Requests that stood still go on as if the time between had not been, unless the engine hangs.
func (e *Engine) Resume(now Time) {
	e.pause = pause{}
	e.standStill(now)
}

// standStill has everything stand still from now on, or go on as if the time between had not been, as pause and hangs say.
func (e *Engine) standStill(now Time) {
	switch still := e.pause.frozen || e.Hung(); {
	case still && !e.still.on:
		e.still = stillness{true, now}
	case !still && e.still.on:
		e.still.on = false
		e.postpone(now - e.still.since)
	}
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
