package model

import (
	"slices"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
)

// held is a time to first token, in ms, that no history waits for: what is admitted under it runs until it is aborted.
const held = 3_600_000

// outcome is a set of ways in which a request may end.
type outcome uint8

const (
	completed outcome = 1 << iota
	failed
	aborted
)

// request is one request as its client knows it. Ids are used once, but for a duplicate, which is a request of its own.
type request struct {
	id      string
	prompt  int
	tokens  uint32
	allowed outcome // what it may end with
	held    bool    // it runs, and never ends by itself
	aborted bool    // its client gave it up
	broken  bool    // it can't be read beyond its id
}

// engine is what one engine should be: its settings, its requests in order, and its books since the supervisor's start.
type engine struct {
	live             config.Live
	launched         config.Live
	running, waiting []*request
	raw, base        ipc.Stats // base is raw at the last reset
	lost, restarts   uint64
	dropped          uint64
	garbage          uint64 // of dropped, what it may not have read yet
	dead             bool
}

// arrive is a request that reaches the engine. Those that end at once are returned by settle.
func (e *engine) arrive(r *request) {
	e.raw.Received++
	limit := int(e.live.MaxModelLen)
	switch {
	case r.broken, e.holds(r.id), limit > 0 && r.prompt+int(r.tokens) > limit, e.live.FailureInjectionRate == 1:
		r.allowed = failed
	default:
		r.allowed = completed
	}
	e.waiting = append(e.waiting, r)
}

// holds says whether a request of that id is there and can't have ended.
func (e *engine) holds(id string) bool {
	return slices.ContainsFunc(e.running, func(r *request) bool { return r.id == id && r.held })
}

// giveUp is an ABORT that reaches the engine.
func (e *engine) giveUp(id string) {
	for _, r := range slices.Concat(e.running, e.waiting) {
		if r.id != id || r.allowed == failed {
			continue
		}
		r.aborted = true
		if r.allowed |= aborted; r.held {
			r.allowed = aborted
		}
	}
}

// settle lets everything happen that happens by itself while the settings stay as they are. It returns the requests that have ended, in
// any order. A request that nothing but an abort can have ended is left with that alone.
func (e *engine) settle() (ended []*request) {
	stays := func(r *request) bool { return r.held && !r.aborted }
	e.waiting = slices.DeleteFunc(e.waiting, func(r *request) bool {
		if r.allowed == failed {
			ended = append(ended, r)
		}
		return r.allowed == failed
	})
	for {
		for _, r := range e.running {
			if !stays(r) {
				ended = append(ended, r)
			}
		}
		e.running = slices.DeleteFunc(e.running, func(r *request) bool { return !stays(r) })
		if len(e.waiting) == 0 || len(e.running) >= int(e.live.MaxNumSeqs) {
			break
		}
		r := e.waiting[0]
		e.waiting = e.waiting[1:]
		if r.held = e.live.TimeToFirstToken == held; r.held && r.aborted {
			r.allowed = aborted
		}
		e.running = append(e.running, r)
	}
	e.waiting = slices.DeleteFunc(e.waiting, func(r *request) bool { // behind those that hold every slot
		if r.aborted {
			r.allowed = aborted
			ended = append(ended, r)
		}
		return r.aborted
	})
	return ended
}

// count enters how a request ended, by what its client saw.
func (e *engine) count(how outcome) {
	switch how {
	case completed:
		e.raw.Completed++
	case failed:
		e.raw.Failed++
	case aborted:
		e.raw.Aborted++
	}
}

// stats is what the engine should show once it has settled.
func (e *engine) stats() ipc.Stats {
	s := minus(e.raw, e.base)
	s.Running, s.Waiting = uint64(len(e.running)), uint64(len(e.waiting))
	return s
}

// open are the requests that have not ended.
func (e *engine) open() []*request { return slices.Concat(e.running, e.waiting) }

func minus(a, b ipc.Stats) ipc.Stats {
	return ipc.Stats{
		Received: a.Received - b.Received, Completed: a.Completed - b.Completed, Failed: a.Failed - b.Failed, Aborted: a.Aborted - b.Aborted,
	}
}
