package httpserve

import (
	"container/list"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"
)

// Connections are the open connections of a server and what each is doing. fasthttp's own shutdown waits for every client
// that has sent nothing or half a request; this one knows whom to wait for. It also keeps clients that say nothing, or never
// say all, from taking all descriptors and memory: a new connection beyond the limits costs the one that has been quiet for
// longest. Connections at work, from the whole request to the end of its answer, are never closed for another; one that
// begins its work beyond the limit ends with its answer.
type Connections struct {
	limits  Limits
	mu      sync.Mutex
	open    map[net.Conn]*list.Element // its place in quiet; nil = at work
	quiet   *list.List                 // of *quietConn, the one that is quiet for longest first
	closing bool
	emptyC  chan struct{} // closed when closing and the last one has gone
}

// Limits are when a quiet connection is closed for a new one.
type Limits struct {
	// Open is the most connections, those at work included.
	Open int
	// Spared is how long a connection may be quiet before it can be closed for another.
	Spared time.Duration
}

// maxQuiet bounds the memory of quiet connections, each of which holds a goroutine and a buffer.
const maxQuiet = 16 << 10

// quietConn is a connection that is not at work.
type quietConn struct {
	conn      net.Conn
	since     time.Time // of its last change
	receiving bool      // it has sent the beginning of a request
}

// NewConnections returns the connections of a server that has none yet.
func NewConnections(l Limits) *Connections {
	return &Connections{limits: l, open: map[net.Conn]*list.Element{}, quiet: list.New(), emptyC: make(chan struct{})}
}

// HalfOfDescriptors is half of the descriptors that the process may have, at least 8 and at most most: the other half is for
// everything else.
func HalfOfDescriptors(most int) int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return most
	}
	return int(max(8, min(uint64(most), limit.Cur/2)))
}

// note is told by the server about every change of a connection, from that connection's goroutine.
func (c *Connections) note(conn net.Conn, state fasthttp.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unlist(conn)
	if state == fasthttp.StateClosed {
		delete(c.open, conn)
		c.checkEmpty()
		return
	}
	q := &quietConn{conn, time.Now(), state == fasthttp.StateActive}
	c.open[conn] = c.quiet.PushBack(q)
	if c.closing && !q.receiving {
		readNoMore(conn)
	}
	if state == fasthttp.StateNew && (c.tooMany() || c.quiet.Len() > maxQuiet) {
		c.closeQuietest(conn)
	}
}

func (c *Connections) tooMany() bool { return len(c.open) > c.limits.Open }

// work says that the whole request of conn has come, and returns whether it shall be the last one on its connection.
func (c *Connections) work(conn net.Conn) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.open[conn]; ok {
		c.unlist(conn)
		c.open[conn] = nil
	}
	return c.closing || c.tooMany()
}

func (c *Connections) unlist(conn net.Conn) {
	if e := c.open[conn]; e != nil {
		c.quiet.Remove(e)
	}
}

// makeRoom closes the connection that has been quiet for longest, if there is one for long enough.
func (c *Connections) makeRoom() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeQuietest(nil)
}

// closeQuietest spares newest.
func (c *Connections) closeQuietest(newest net.Conn) {
	e := c.quiet.Front()
	if e == nil {
		return
	}
	q := e.Value.(*quietConn)
	if q.conn == newest || time.Since(q.since) < c.limits.Spared {
		return
	}
	c.quiet.Remove(e)
	delete(c.open, q.conn)
	cut(q.conn)
}

// cut closes a connection without waiting for its client: TLS's own end of a connection could block. The goroutine that serves
// it meets the error and says StateClosed.
func cut(conn net.Conn) {
	_ = Raw(conn).Close() // it is open, or closed already
}

// readNoMore ends a connection when what has been read of it is answered: behind an answer that waits to be sent there may be one more
// request, which the server has in its buffer.
func readNoMore(conn net.Conn) {
	half, ok := Raw(conn).(interface{ CloseRead() error })
	if !ok || half.CloseRead() != nil {
		cut(conn)
	}
}

func (c *Connections) checkEmpty() {
	if !c.closing || len(c.open) > 0 {
		return
	}
	select {
	case <-c.emptyC:
	default:
		close(c.emptyC)
	}
}

// Finish closes the connections that are between two requests, and those with a request when it is answered, for which it
// waits at most grace. Then it calls overdue, where not nil, closes the rest and waits as long again for the goroutines that
// serve them. No connection may be accepted any more.
func (c *Connections) Finish(grace time.Duration, overdue func()) {
	c.closeThose(func(q *quietConn) bool { return q != nil && !q.receiving })
	c.wait(grace)
	if overdue != nil {
		overdue()
	}
	c.closeThose(func(*quietConn) bool { return true })
	c.wait(grace)
}

// closeThose closes which connections; a nil one is at work.
func (c *Connections) closeThose(which func(*quietConn) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	for conn, e := range c.open {
		var q *quietConn
		if e != nil {
			q = e.Value.(*quietConn)
		}
		if which(q) {
			cut(conn)
		}
	}
	c.checkEmpty()
}

func (c *Connections) wait(most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-c.emptyC:
	case <-timer.C:
	}
}
