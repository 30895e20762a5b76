package zmtp

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
)

// RouterSocket is the accepting end of many DEALER connections, told apart by
// their identities. A connection that announces none is given one of 5 bytes,
// of which the first is 0. Send may be called from any goroutine, Recv from one
// at a time.
type RouterSocket struct {
	inbox   *inbox
	onLeave func([]byte, error)
	unnamed uint32 // identities given so far; belongs to join

	mu    sync.RWMutex
	peers map[string]*source
}

// ListenRouter binds address as Listen does. The Type of o is ignored; its marks
// hold for each connection.
func ListenRouter(address string, o Options) (*RouterSocket, error) {
	o.Type = Router
	r := &RouterSocket{onLeave: o.OnLeave, peers: make(map[string]*source)}
	b, err := newInbox(address, o, hooks{join: r.join, leave: r.leave})
	if err != nil {
		return nil, err
	}
	r.inbox = b
	return r, nil
}

// Address is where a peer on this host can dial the router.
func (r *RouterSocket) Address() string { return r.inbox.listener.Address() }

// Recv waits for the next message of any peer. identity stays valid, frames
// until the next Recv; neither may be modified. Connections that have messages
// take turns. After Close the error wraps ErrClosed.
func (r *RouterSocket) Recv() (identity []byte, frames [][]byte, err error) {
	s, frames, err := r.inbox.recv()
	if err != nil {
		return nil, nil, fmt.Errorf("receive at %s: %w", r.Address(), err)
	}
	return s.identity, frames, nil
}

// Send queues a message for the peer of that identity, as Conn.Send does. The
// error wraps ErrUnknownPeer if there is none.
func (r *RouterSocket) Send(identity []byte, frames ...[]byte) error {
	r.mu.RLock()
	s := r.peers[string(identity)]
	r.mu.RUnlock()
	if s == nil {
		return fmt.Errorf("send to identity %x: %w", identity, ErrUnknownPeer)
	}
	return s.conn.Send(frames...)
}

// Close stops listening and receiving, and closes every connection as Conn.Close
// does, all at the same time.
func (r *RouterSocket) Close(ctx context.Context) error { return r.inbox.close(ctx) }

// join enters a connection; an older one of the same identity gives way.
func (r *RouterSocket) join(s *source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(s.identity) == 0 {
		s.identity = r.newIdentity()
	}
	if old := r.peers[string(s.identity)]; old != nil {
		old.conn.end(ErrReplaced)
	}
	r.peers[string(s.identity)] = s
}

// newIdentity makes up an identity that nobody has, in libzmq's form.
func (r *RouterSocket) newIdentity() []byte {
	for {
		r.unnamed++
		identity := binary.BigEndian.AppendUint32([]byte{0}, r.unnamed)
		if r.peers[string(identity)] == nil {
			return identity
		}
	}
}

func (r *RouterSocket) leave(s *source, err error) {
	r.mu.Lock()
	if r.peers[string(s.identity)] == s {
		delete(r.peers, string(s.identity))
	}
	r.mu.Unlock()
	if r.onLeave != nil {
		r.onLeave(s.identity, err)
	}
}
