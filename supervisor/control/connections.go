package control

import (
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// connections are the open connections of a server and what each is doing. fasthttp's own shutdown waits for every
// client that has sent nothing or half a request; this one knows whom to wait for.
type connections struct {
	mu      sync.Mutex
	open    map[net.Conn]fasthttp.ConnState
	closing bool
	emptyC  chan struct{} // closed when closing and the last one has gone
}

func newConnections() *connections {
	return &connections{open: map[net.Conn]fasthttp.ConnState{}, emptyC: make(chan struct{})}
}

// note is told by the server about every change of a connection, from that connection's goroutine. A connection is
// active from the first byte of a request until its answer has left.
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

// close closes the connections that are between two requests, and those at work when they are done. It waits for them at
// most grace. No connection may be accepted any more.
func (c *connections) close(grace time.Duration) {
	c.mu.Lock()
	c.closing = true
	for conn, state := range c.open {
		if state != fasthttp.StateActive {
			_ = conn.Close() // as in note
		}
	}
	c.checkEmpty()
	c.mu.Unlock()
	c.wait(grace)
}

// abandon closes the rest and waits at most grace for the goroutines that serve them.
func (c *connections) abandon(grace time.Duration) {
	c.mu.Lock()
	for conn := range c.open {
		_ = conn.Close() // as in note
	}
	c.mu.Unlock()
	c.wait(grace)
}

func (c *connections) wait(most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-c.emptyC:
	case <-timer.C:
	}
}
