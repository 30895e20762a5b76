package zmtp

import (
	"fmt"
	"net"
	"sync"
	"time"

	"vllm-vcr/unixsocket"
)

// maxWaiting bounds the connections of a listener that Accept hasn't returned,
// handshakes included. Those that come while so many wait are closed at once.
const maxWaiting = 1024

// Listener accepts connections and hands out those whose handshake is done.
// Handshakes run beside each other, so a slow or broken peer delays nobody.
type Listener struct {
	ln      net.Listener
	address string
	options Options
	connC   chan *Conn     // never closed; a handshake's goroutine waits here for Accept
	closedC chan struct{}  // closed by Close
	running sync.WaitGroup // the accepting goroutine, and one for each handshake

	mu      sync.Mutex
	closed  bool
	waiting int                   // connections that Accept hasn't returned
	greeted map[net.Conn]struct{} // those of them that are in their handshake
}

// Listen binds address: tcp://host:port, where host may be * and port 0, or
// ipc:///path. A Unix socket gets mode 0600 and is removed by Close; a file that
// is in its way is removed only if it is a socket of this user that nobody
// listens on.
func Listen(address string, o Options) (*Listener, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("listen %s: %w", address, err)
	}
	at, err := parseAddress(address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	ln, err := bind(at)
	if err != nil {
		return nil, fmt.Errorf("listen %s: %w", address, err)
	}
	l := &Listener{
		ln: ln, address: boundAddress(at, ln), options: o,
		connC:   make(chan *Conn),
		closedC: make(chan struct{}),
		greeted: make(map[net.Conn]struct{}),
	}
	l.running.Go(l.run)
	return l, nil
}

func bind(at endpoint) (net.Listener, error) {
	if at.network == "unix" {
		return unixsocket.Listen(at.path)
	}
	return net.Listen(at.network, at.netAddress())
}

// Address is where a peer on this host can dial the listener, with the real
// port.
func (l *Listener) Address() string { return l.address }

// Accept waits for the next connection that has completed its handshake. The
// caller owns it. After Close the error is ErrClosed.
func (l *Listener) Accept() (*Conn, error) {
	select {
	case c := <-l.connC:
		return c, nil
	case <-l.closedC:
		return nil, fmt.Errorf("accept at %s: %w", l.address, ErrClosed)
	}
}

// Close stops listening and ends the connections that Accept has not returned.
// It waits for the listener's goroutines and may be called more than once.
func (l *Listener) Close() error {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	if first {
		close(l.closedC)
	}
	for nc := range l.greeted {
		_ = nc.Close() // it fails the handshake
	}
	l.mu.Unlock()
	var err error
	if first {
		err = l.ln.Close()
	}
	l.running.Wait()
	return err
}

// run accepts until the listener is closed. Other errors of accept (too many
// open files) pass; it waits a little longer after each in a row.
func (l *Listener) run() {
	wait := firstBackoff
	for {
		nc, err := l.ln.Accept()
		switch {
		case err == nil:
			wait = firstBackoff
			l.admit(nc)
		case l.pause(wait):
			l.reject(fmt.Errorf("accept: %w", err))
			wait = min(2*wait, DefaultMaxBackoff)
		default:
			return
		}
	}
}

// pause waits; it reports false once the listener is closed.
func (l *Listener) pause(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-l.closedC:
		return false
	case <-timer.C:
		return true
	}
}

// admit starts the handshake of nc, if there is room.
func (l *Listener) admit(nc net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.waiting >= maxWaiting {
		_ = nc.Close() // its peer learns all there is to learn
		return
	}
	l.waiting++
	l.greeted[nc] = struct{}{}
	l.running.Go(func() { l.greet(nc) })
}

// greet does the handshake with nc and offers it to Accept.
func (l *Listener) greet(nc net.Conn) {
	c, err := newConn(nc, l.address, l.options)
	l.mu.Lock()
	delete(l.greeted, nc)
	closed := l.closed
	l.mu.Unlock()
	switch {
	case err == nil:
		l.offer(c)
	case !closed:
		l.reject(fmt.Errorf("%s: %w", l.address, err))
	}
	l.mu.Lock()
	l.waiting--
	l.mu.Unlock()
}

// offer waits until Accept takes c.
func (l *Listener) offer(c *Conn) {
	select {
	case l.connC <- c:
	case <-l.closedC:
		c.abort(ErrClosed)
	}
}

func (l *Listener) reject(err error) {
	if l.options.OnReject != nil {
		l.options.OnReject(err)
	}
}
