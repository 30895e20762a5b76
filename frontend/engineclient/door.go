package engineclient

import (
	"context"
	"errors"
	"sync"

	"vllm-vcr/protocol/zmtp"
)

// door accepts connections at one address and serves each on a goroutine of its own, until it is closed.
type door struct {
	listener *zmtp.Listener
	serve    func(*zmtp.Conn) // returns when it is done with the connection, which is closed then
	running  sync.WaitGroup   // the accepting goroutine, and one for each connection

	mu     sync.Mutex
	closed bool
	conns  map[*zmtp.Conn]struct{}
}

// openDoor binds address. Nothing is accepted before run.
func openDoor(address string, as zmtp.SocketType, refused func(error), serve func(*zmtp.Conn)) (*door, error) {
	l, err := zmtp.Listen(address, zmtp.Options{Type: as, OnReject: refused})
	if err != nil {
		return nil, err
	}
	return &door{listener: l, serve: serve, conns: map[*zmtp.Conn]struct{}{}}, nil
}

func (d *door) address() string { return d.listener.Address() }

// start begins to accept.
func (d *door) start() {
	d.running.Go(func() {
		for {
			c, err := d.listener.Accept()
			if err != nil {
				return
			}
			d.admit(c)
		}
	})
}

func (d *door) admit(c *zmtp.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = c.Close(atOnce()) // nothing was sent over it
		return
	}
	d.conns[c] = struct{}{}
	d.running.Go(func() {
		d.serve(c)
		_ = c.Close(atOnce()) // whoever has something to flush closes it himself
		d.mu.Lock()
		delete(d.conns, c)
		d.mu.Unlock()
	})
}

// close stops accepting, flushes all connections until ctx ends, and waits for every goroutine. It may be called more than
// once.
func (d *door) close(ctx context.Context) error {
	d.mu.Lock()
	d.closed = true
	conns := make([]*zmtp.Conn, 0, len(d.conns))
	for c := range d.conns {
		conns = append(conns, c)
	}
	d.mu.Unlock()
	err := d.listener.Close()
	errs := make([]error, len(conns), len(conns)+1)
	var closing sync.WaitGroup
	for i, c := range conns {
		closing.Go(func() { errs[i] = c.Close(ctx) })
	}
	closing.Wait()
	d.running.Wait()
	return errors.Join(append(errs, err)...)
}

// atOnce is a context that has ended: closing with it does not flush.
func atOnce() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
