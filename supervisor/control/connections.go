package control

import (
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"
)

// connections are the open connections of a server and what each is doing. fasthttp's own shutdown waits for every
// client that has sent nothing or half a request; this one knows whom to wait for. It also keeps clients that say nothing
// from taking all descriptors: beyond most, each new connection costs the one that has been quiet for longest.
type connections struct {
	most    int
	mu      sync.Mutex
	open    map[net.Conn]activity
	closing bool
	emptyC  chan struct{} // closed when closing and the last one has gone
}

// activity is what a connection does, and since when.
type activity struct {
	state fasthttp.ConnState
	since time.Time
}

func newConnections(most int) *connections {
	return &connections{most: most, open: map[net.Conn]activity{}, emptyC: make(chan struct{})}
}

// mostConnections leaves half of the process's descriptors to everything else.
func mostConnections() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return maxConnections
	}
	return int(max(8, min(maxConnections, uint64(limit.Cur)/2)))
}

const maxConnections = 4096

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
	c.open[conn] = activity{state, time.Now()}
	if c.closing && state != fasthttp.StateActive {
		_ = conn.Close() // its goroutine meets the error and says StateClosed
	}
	if state == fasthttp.StateNew && len(c.open) > c.most {
		c.closeQuietest(conn)
	}
}

// closeQuietest makes room for a new connection. Those at work are left alone: they have their own time-outs.
func (c *connections) closeQuietest(newest net.Conn) {
	var quietest net.Conn
	for conn, a := range c.open {
		if conn != newest && a.state != fasthttp.StateActive && (quietest == nil || a.since.Before(c.open[quietest].since)) {
			quietest = conn
		}
	}
	if quietest != nil {
		delete(c.open, quietest)
		_ = quietest.Close() // as in note
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
	for conn, a := range c.open {
		if a.state != fasthttp.StateActive {
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
