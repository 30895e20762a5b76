package engineclient

import (
	"bytes"
	"sync"

	"vllm-vcr/protocol/enginecore"

	"github.com/tinylib/msgp/msgp"
)

// CallError is an engine's refusal of a utility call.
type CallError struct {
	Method string
	Text   string // the engine's
}

// Error is the method and the engine's text.
func (e *CallError) Error() string { return e.Method + ": " + e.Text }

// calls are the utility calls that wait for an answer.
type calls struct {
	mu      sync.Mutex
	last    uint64
	closed  error // non-nil once nothing is waited for any more
	waiting map[enginecore.CallID]call
}

// call is one of them.
type call struct {
	rank, client int
	method       string
	replyC       chan reply // capacity 1, written once
}

type reply struct {
	value msgp.Raw
	err   error
}

// add enters a call and gives it an id. One that comes too late fails at once.
func (cs *calls) add(rank, client int, method string) (enginecore.CallID, <-chan reply) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.last++
	id := enginecore.NewCallID(cs.last)
	c := call{rank: rank, client: client, method: method, replyC: make(chan reply, 1)}
	if cs.closed != nil {
		c.replyC <- reply{err: cs.closed}
		return id, c.replyC
	}
	cs.waiting[id] = c
	return id, c.replyC
}

// forget gives up a call.
func (cs *calls) forget(id enginecore.CallID) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.waiting, id)
}

// answer ends the call that r answers; false if nobody waits for it.
func (cs *calls) answer(r *enginecore.UtilityResult) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c, ok := cs.waiting[r.CallID]
	if !ok {
		return false
	}
	delete(cs.waiting, r.CallID)
	if r.Failure.Set {
		c.replyC <- reply{err: &CallError{Method: c.method, Text: r.Failure.Value}}
		return true
	}
	c.replyC <- reply{value: bytes.Clone(r.Value)}
	return true
}

// fail ends the calls to an engine over one of its connections.
func (cs *calls) fail(rank, client int, err error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for id, c := range cs.waiting {
		if c.rank == rank && c.client == client {
			delete(cs.waiting, id)
			c.replyC <- reply{err: err}
		}
	}
}

// failAll ends all calls, and those to come.
func (cs *calls) failAll(err error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.closed = err
	for id, c := range cs.waiting {
		delete(cs.waiting, id)
		c.replyC <- reply{err: err}
	}
}
