package model

import (
	"slices"
	"sync"

	"vllm-vcr/frontend/engineclient"
	"vllm-vcr/protocol/enginecore"
)

// witness is what the client of a fleet has seen: how each request ended, and nothing else.
type witness struct {
	mu       sync.Mutex
	tokens   map[string]uint32
	ends     map[string][]ending
	up       map[int]bool
	changedC chan struct{} // capacity 1: something new was seen
}

// ending is the end of one request.
type ending struct {
	how    outcome
	tokens uint32
	reason enginecore.FinishReason
}

func newWitness() *witness {
	return &witness{
		tokens: map[string]uint32{}, ends: map[string][]ending{}, up: map[int]bool{}, changedC: make(chan struct{}, 1),
	}
}

func (w *witness) events() engineclient.Events {
	return engineclient.Events{
		Outputs: w.take,
		Up:      func(rank int, _ enginecore.ReadyResponse) { w.mark(rank, true) },
		Lost:    func(rank int, _ error) { w.mark(rank, false) },
	}
}

func (w *witness) mark(rank int, up bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.up[rank] = up
	w.wake()
}

// wake has w.mu.
func (w *witness) wake() {
	select {
	case w.changedC <- struct{}{}:
	default:
	}
}

func (w *witness) take(d *engineclient.Delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range d.Outputs.Requests {
		w.output(&d.Outputs.Requests[i])
	}
	w.wake()
}

func (w *witness) output(o *enginecore.RequestOutput) {
	id := string(o.ID)
	n := w.tokens[id] + uint32(len(o.Tokens))
	if o.Finish == enginecore.FinishNone {
		w.tokens[id] = n
		return
	}
	w.ends[id] = append(w.ends[id], ending{how: judge(o.Finish, n), tokens: n, reason: o.Finish})
	if o.Finish != enginecore.FinishError { // of a duplicate: the first goes on
		delete(w.tokens, id)
	}
}

// judge tells a completed request from one that was made to fail in the same words: that has no token.
func judge(f enginecore.FinishReason, tokens uint32) outcome {
	switch {
	case f == enginecore.FinishAbort:
		return aborted
	case f == enginecore.FinishLength && tokens > 0:
		return completed
	default:
		return failed
	}
}

// use takes away an end that the request may have had, if one was seen.
func (w *witness) use(r *request) (ending, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, e := range w.ends[r.id] {
		if e.how&r.allowed == 0 || e.how == completed && e.tokens != r.tokens {
			continue
		}
		if w.ends[r.id] = slices.Delete(w.ends[r.id], i, i+1); len(w.ends[r.id]) == 0 {
			delete(w.ends, r.id)
		}
		return e, true
	}
	return ending{}, false
}

// rest are ends that nothing explains.
func (w *witness) rest() map[string][]ending {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.ends) == 0 {
		return nil
	}
	return w.ends
}

func (w *witness) isUp(rank int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.up[rank]
}

// forget drops what was seen, once nothing is open.
func (w *witness) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.tokens)
	clear(w.ends)
}
