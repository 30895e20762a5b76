package zmtp

import (
	"context"
	"errors"
	"sync"
)

// inbox merges the messages of all connections of a listener into one stream,
// one message of each that has some in turn. Each connection has a goroutine
// that reads it and waits, after every message, until the consumer is done with
// it: so frames need no copying, and a consumer that stops reading stops its
// peers.
type inbox struct {
	listener *Listener
	arrivalC chan arrival   // never closed; unbuffered
	closedC  chan struct{}  // closed by close
	running  sync.WaitGroup // accept, and one for each source
	last     *source        // whose frames the consumer has; belongs to recv

	mu      sync.Mutex
	closed  bool
	sources map[*source]struct{}
}

// source is one connection of an inbox.
type source struct {
	conn     *Conn
	identity []byte
	releaseC chan struct{} // capacity 1: recv never waits for the source; never closed
}

// arrival is a message on its way to the consumer.
type arrival struct {
	from   *source
	frames [][]byte
}

// hooks let the owner of an inbox follow its connections; it calls them from
// its own goroutines.
type hooks struct {
	join  func(*source) // from one goroutine, before the first message of the source
	leave func(*source, error)
}

func newInbox(address string, o Options, h hooks) (*inbox, error) {
	l, err := Listen(address, o)
	if err != nil {
		return nil, err
	}
	b := &inbox{
		listener: l,
		arrivalC: make(chan arrival),
		closedC:  make(chan struct{}),
		sources:  make(map[*source]struct{}),
	}
	b.running.Go(func() { b.accept(h) })
	return b, nil
}

func (b *inbox) accept(h hooks) {
	for {
		c, err := b.listener.Accept()
		if err != nil {
			return
		}
		s := &source{conn: c, identity: c.PeerIdentity(), releaseC: make(chan struct{}, 1)}
		if !b.add(s) {
			c.abort(ErrClosed)
			return
		}
		h.join(s)
		b.running.Go(func() { b.serve(s, h) })
	}
}

// add takes s in, unless the inbox is closed.
func (b *inbox) add(s *source) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.sources[s] = struct{}{}
	}
	return !b.closed
}

// serve passes on what s receives until it ends or the inbox is closed.
func (b *inbox) serve(s *source, h hooks) {
	for {
		frames, err := s.conn.Recv()
		if err != nil {
			b.remove(s, err, h)
			return
		}
		select {
		case b.arrivalC <- arrival{s, frames}:
		case <-b.closedC:
			return
		}
		select {
		case <-s.releaseC:
		case <-b.closedC:
			return
		}
	}
}

func (b *inbox) remove(s *source, err error, h hooks) {
	b.mu.Lock()
	closed := b.closed
	delete(b.sources, s)
	b.mu.Unlock()
	if closed {
		return // close has the connection
	}
	s.conn.running.Wait()
	h.leave(s, err)
}

// recv returns the next message, valid until the next recv.
func (b *inbox) recv() (*source, [][]byte, error) {
	if b.last != nil {
		b.last.releaseC <- struct{}{}
		b.last = nil
	}
	select {
	case a := <-b.arrivalC:
		b.last = a.from
		return a.from, a.frames, nil
	case <-b.closedC:
		return nil, nil, ErrClosed
	}
}

// close stops listening and receiving, and closes all connections, flushing
// them until ctx ends. It waits for all goroutines.
func (b *inbox) close(ctx context.Context) error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.closedC)
	}
	left := make([]*source, 0, len(b.sources))
	for s := range b.sources {
		left = append(left, s)
	}
	b.mu.Unlock()
	errs := make([]error, len(left)+1)
	var closing sync.WaitGroup
	for i, s := range left {
		closing.Go(func() { errs[i] = s.conn.Close(ctx) })
	}
	errs[len(left)] = b.listener.Close()
	closing.Wait()
	b.running.Wait()
	return errors.Join(errs...)
}
