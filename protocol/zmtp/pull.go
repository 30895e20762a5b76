package zmtp

import (
	"context"
	"fmt"
)

// Puller is the accepting end of many PUSH connections. Recv is for one
// goroutine at a time.
type Puller struct{ inbox *inbox }

// ListenPull binds address as Listen does. The Type of o is ignored.
func ListenPull(address string, o Options) (*Puller, error) {
	o.Type = Pull
	onLeave := o.OnLeave
	b, err := newInbox(address, o, hooks{
		join: func(*source) {},
		leave: func(s *source, err error) {
			if onLeave != nil {
				onLeave(s.identity, err)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return &Puller{inbox: b}, nil
}

// Address is where a peer on this host can dial the puller.
func (p *Puller) Address() string { return p.inbox.listener.Address() }

// Recv waits for the next message of any peer; its frames are valid until the
// next Recv. Connections that have messages take turns. After Close the error
// wraps ErrClosed.
func (p *Puller) Recv() (frames [][]byte, err error) {
	_, frames, err = p.inbox.recv()
	if err != nil {
		return nil, fmt.Errorf("receive at %s: %w", p.Address(), err)
	}
	return frames, nil
}

// Close stops listening and ends every connection; what they had sent and Recv
// has not returned is lost.
func (p *Puller) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), lingerTime)
	defer cancel()
	return p.inbox.close(ctx) // nothing but a PONG can be queued
}
