package frontend

import (
	"context"
	"sync"
)

// gate counts the requests that are at the engines, and closes for new ones when the server drains.
type gate struct {
	mu     sync.Mutex
	closed bool
	inside int
	emptyC chan struct{} // closed when the gate is closed and the last one has left

	life context.Context // of every request; ends with errStopped
	end  context.CancelCauseFunc
}

func newGate() *gate {
	g := &gate{emptyC: make(chan struct{})}
	g.life, g.end = context.WithCancelCause(context.Background())
	return g
}

// enter lets a request in; false if the gate is closed. leave must follow once.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.check()
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.check()
}

// check has g.mu.
func (g *gate) check() {
	if !g.closed || g.inside > 0 {
		return
	}
	select {
	case <-g.emptyC:
	default:
		close(g.emptyC)
	}
}

func (g *gate) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// load is the number of requests inside.
func (g *gate) load() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inside
}
