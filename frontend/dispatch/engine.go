package dispatch

import (
	"errors"
	"fmt"
	"sync"

	"vllm-vcr/protocol/enginecore"
)

// engine is one engine as seen from here.
type engine struct {
	rank     int
	balancer *balancer

	delivery sync.Mutex // held over a message; guards what follows
	step     step
	hits     []*Stream // of the message's outputs; nil = nobody's

	mu          sync.Mutex
	streams     map[string]*Stream // by id at the engine; those whose end isn't decided, and for a moment those where it just was
	up          bool               // takes requests
	incarnation uint64             // grows whenever the engine comes or goes
	cause       error              // of its being gone; nil = it is up, coming up, or never was
	known       bool               // it was up once
	info        enginecore.ReadyResponse
	openedC     chan struct{} // closed when it takes requests for the first time
}

func newEngine(rank int, b *balancer) *engine {
	return &engine{rank: rank, balancer: b, streams: map[string]*Stream{}, openedC: make(chan struct{})}
}

// joined enters that the engine is there. It takes no requests before it was opened for this incarnation.
func (e *engine) joined(r enginecore.ReadyResponse) (incarnation uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.incarnation++
	e.info, e.known, e.cause = r, true, nil
	return e.incarnation
}

// open has the engine take requests, and reports it, unless it has gone since it joined.
func (e *engine) open(incarnation uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.incarnation != incarnation {
		return false
	}
	e.up = true
	e.balancer.set(e.rank, true)
	select {
	case <-e.openedC: // not for the first time
	default:
		close(e.openedC)
	}
	return true
}

// gone takes the engine out of service and gives its streams to the caller, who ends them.
func (e *engine) gone(cause error) map[string]*Stream {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.incarnation++
	e.up = false
	if e.cause == nil { // else what was seen first tells more
		e.cause = cause
	}
	e.balancer.set(e.rank, false)
	streams := e.streams
	e.streams = map[string]*Stream{}
	return streams
}

// add enters a stream and sends its request, both or neither: the engine can't go in between, so that a stream which it
// ends has been asked for.
func (e *engine) add(s *Stream, send func(rank int) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.up {
		return e.absent()
	}
	s.engine = e
	if err := send(e.rank); err != nil {
		return err
	}
	e.streams[s.id] = s
	e.balancer.opened(e.rank)
	return nil
}

// remove takes a stream out, if it is still there.
func (e *engine) remove(s *Stream) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forget(s)
}

// forget has e.mu.
func (e *engine) forget(s *Stream) {
	if _, ok := e.streams[s.id]; ok {
		delete(e.streams, s.id)
		e.balancer.ended(e.rank)
	}
}

// present tells whether the engine is there, taking requests or not yet.
func (e *engine) present() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known && e.cause == nil
}

var errNeverUp = errors.New("it has not joined yet")

// absent says why the engine takes no requests. It has e.mu.
func (e *engine) absent() error {
	switch {
	case e.cause != nil:
		return &EngineDeadError{Rank: e.rank, Cause: e.cause}
	case !e.known:
		return fmt.Errorf("engine %d: %w", e.rank, errNeverUp)
	default:
		return fmt.Errorf("engine %d: still joining", e.rank)
	}
}

// health is nil for an engine that takes requests.
func (e *engine) health() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.up {
		return nil
	}
	return e.absent()
}

func (e *engine) registration() (enginecore.ReadyResponse, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.info, e.known
}
