package frontend

import (
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// connections are the open connections of the server and what each is doing. fasthttp's own shutdown waits for clients that
// have sent nothing or half a request; this one knows whom to wait for.
type connections struct {
	mu      sync.Mutex
	open    map[net.Conn]fasthttp.ConnState
	closing bool
	emptyC  chan struct{} // closed when closing and the last one has gone
}

func newConnections() *connections {
	return &connections{open: map[net.Conn]fasthttp.ConnState{}, emptyC: make(chan struct{})}
}

// note is told by the server about every change of a connection, from that connection's goroutine. A connection is active
// from the first byte of a request until its answer has left.
func (c *connections) note(conn net.Conn, state fasthttp.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == fasthttp.StateClosed {
		delete(c.open, conn)
		c.checkEmpty()
		return
	}
	c.open[conn] = state
	if c.closing && state != fasthttp.StateActive {
		_ = conn.Close() // its goroutine meets the error and says StateClosed
	}
}

func (c *connections) checkEmpty() {
	if !c.closing || len(c.open) > 0 {
		return
	}
	select {
	case <-c.emptyC:
	default:
		close(c.emptyC)
	}
}

// finish closes the connections that are between two requests, and those at work when they are done, for which it waits at most
// grace; then it closes the rest and waits as long again for their goroutines. No connection may be accepted any more.
func (c *connections) finish(grace time.Duration) {
	c.close(func(state fasthttp.ConnState) bool { return state != fasthttp.StateActive })
	c.wait(grace)
	c.close(func(fasthttp.ConnState) bool { return true })
	c.wait(grace)
}

func (c *connections) close(which func(fasthttp.ConnState) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	for conn, state := range c.open {
		if which(state) {
			_ = conn.Close() // as in note
		}
	}
	c.checkEmpty()
}

func (c *connections) wait(most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-c.emptyC:
	case <-timer.C:
	}
}
