package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"vllm-vcr/ipc"
	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
)

// session is what one INIT of a frontend led to: a pair of sockets for each of its API servers, and the coordinator's.
type session struct {
	addresses ipc.Addresses
	stats     string // where the frontend publishes load statistics, for the registration
	links     []*link
	greeting  *zmtp.Conn // of the handshake, nil = there was none
	coordIn   *zmtp.Conn // nil = no coordinator
	coordOut  *zmtp.Conn
}

// link is the pair of sockets of one API server. Input and output are lost and found together.
type link struct {
	client int
	in     *zmtp.Conn
	out    *zmtp.Conn
	left   sync.WaitGroup // the goroutines that watch it
}

// linger bounds the time in which a closing socket gets rid of what it has, as vLLM's engines do.
const linger = 5 * time.Second

// close flushes and ends the link's sockets, within ctx, and waits for those who watch it.
func (k *link) close(ctx context.Context) {
	k.left.Go(func() { _ = k.out.Close(ctx) }) // what a lost peer did not take is lost
	_ = k.in.Close(ctx)
	k.left.Wait()
}

func (s *session) close(ctx context.Context) {
	var all sync.WaitGroup
	for _, k := range s.links {
		if k != nil {
			all.Go(func() { k.close(ctx) })
		}
	}
	for _, conn := range []*zmtp.Conn{s.greeting, s.coordIn, s.coordOut} {
		if conn != nil {
			all.Go(func() { _ = conn.Close(ctx) })
		}
	}
	all.Wait()
}

// leaveHandshake ends the greeting's socket, which has said all it has to.
func (s *session) leaveHandshake(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, linger)
	defer cancel()
	_ = s.greeting.Close(ctx) // a frontend that did not get the READY is gone from the data sockets as well
}

func (s *session) complete() bool {
	for _, k := range s.links {
		if k == nil {
			return false
		}
	}
	return true
}

func (s *session) outputs() []*zmtp.Conn {
	conns := make([]*zmtp.Conn, len(s.links))
	for i, k := range s.links {
		if k != nil {
			conns[i] = k.out
		}
	}
	return conns
}

// dialer opens the sockets of an engine towards its frontend.
type dialer struct {
	identity []byte                                       // the rank in two bytes, little-endian
	register func(stats, coordIn, coordOut string) []byte // the ready response
	late     func(ctx context.Context) time.Duration      // by how much the coming handshake is to be late
	lowWater func(client int)                             // a client has read enough to be handed more
}

// joinBackoff is the longest pause between two attempts to reach a frontend that is expected.
const joinBackoff = 50 * time.Millisecond

func (d *dialer) dealer(ctx context.Context, address string) (*zmtp.Conn, error) {
	return zmtp.Dial(ctx, address, zmtp.Options{Type: zmtp.Dealer, Identity: d.identity, MaxBackoff: joinBackoff})
}

// invitation is a frontend's INIT, and the socket that it came over.
type invitation struct {
	conn *zmtp.Conn
	init enginecore.Init
}

// hello says HELLO at address and waits for the INIT. It waits for a frontend until ctx ends; its error is that of one
// attempt. connected tells whether somebody is being asked.
func (d *dialer) hello(ctx context.Context, address string, connected *atomic.Bool) (*invitation, error) {
	conn, err := d.dealer(ctx, address)
	if err != nil {
		return nil, err
	}
	connected.Store(true)
	defer connected.Store(false)
	defer context.AfterFunc(ctx, func() { _ = conn.Close(ctx) })()
	init, err := askForInit(conn)
	if err != nil {
		_ = conn.Close(expired())
		return nil, fmt.Errorf("handshake at %s: %w", address, err)
	}
	return &invitation{conn, init}, nil
}

func askForInit(conn *zmtp.Conn) (enginecore.Init, error) {
	if err := conn.Send(enginecore.AppendHello(nil, enginecore.Hello{Status: enginecore.StatusHello, Headless: true})); err != nil {
		return enginecore.Init{}, fmt.Errorf("HELLO: %w", err)
	}
	frames, err := conn.Recv()
	if err != nil {
		return enginecore.Init{}, fmt.Errorf("INIT: %w", err)
	}
	if len(frames) != 1 {
		return enginecore.Init{}, fmt.Errorf("INIT of %d frames, want 1", len(frames))
	}
	return enginecore.DecodeInit(frames[0])
}

// accept opens the sockets of an invitation that s doesn't have yet, and says READY. What it opened is in the session that
// it returns, at the same places, and so are the links that were made before; s itself is not changed.
func (d *dialer) accept(ctx context.Context, inv *invitation, s session, made map[int]*link) (*session, error) {
	defer context.AfterFunc(ctx, func() { _ = inv.conn.Close(ctx) })()
	opened := &session{addresses: s.addresses, stats: s.stats, links: make([]*link, len(s.links))}
	for i, k := range made {
		opened.links[i] = k
	}
	there := whileThere(ctx, inv.conn)
	if late := d.late(there); late > 0 {
		wait(there, late)
	}
	err := d.open(there, opened, s.links)
	if err == nil {
		err = inv.conn.Send(enginecore.AppendHello(nil, enginecore.Hello{Status: enginecore.StatusReady, Headless: true}))
	}
	if err != nil {
		_ = inv.conn.Close(expired())
		opened.close(expired())
		return nil, fmt.Errorf("join: %w", err)
	}
	opened.greeting = inv.conn
	return opened, nil
}

// whileThere returns a context that ends with a frontend that goes before it has heard READY: its data sockets are never to
// be reached then. The goroutine that watches ends with conn.
func whileThere(ctx context.Context, conn *zmtp.Conn) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for {
			if _, err := conn.Recv(); err != nil { // what else a frontend may say means nothing
				cancel(fmt.Errorf("the frontend left: %w", err))
				return
			}
		}
	}()
	return ctx
}

// open connects the sockets of a session, but for those links that there are already, and waits until its coordinator has
// seen every engine.
func (d *dialer) open(ctx context.Context, s *session, there []*link) error {
	for i := range s.links {
		if there[i] != nil || s.links[i] != nil {
			continue
		}
		k, err := d.link(ctx, s, i)
		if err != nil {
			return err
		}
		s.links[i] = k
	}
	if s.addresses.CoordinatorInput == "" {
		return nil
	}
	if err := d.coordinate(ctx, s); err != nil {
		return fmt.Errorf("coordinator: %w", err)
	}
	return d.awaitCoordinator(ctx, s)
}

// link connects the sockets of client i and registers there.
func (d *dialer) link(ctx context.Context, s *session, i int) (*link, error) {
	in, err := d.dealer(ctx, s.addresses.Inputs[i])
	if err != nil {
		return nil, fmt.Errorf("input %d: %w", i, err)
	}
	out, err := zmtp.Dial(ctx, s.addresses.Outputs[i], zmtp.Options{
		Type: zmtp.Push, MaxBackoff: joinBackoff, MaxQueued: maxQueued,
		HighWater: lowBytes, LowWater: lowBytes, OnLowWater: func() { d.lowWater(i) },
	})
	if err == nil {
		if err = in.Send(d.register(s.stats, s.addresses.CoordinatorInput, s.addresses.CoordinatorOutput)); err != nil {
			_ = out.Close(expired())
		}
	}
	if err != nil {
		_ = in.Close(expired())
		return nil, fmt.Errorf("output %d: %w", i, err)
	}
	return &link{client: i, in: in, out: out}, nil
}

// coordinate subscribes to the coordinator and connects the way to it.
func (d *dialer) coordinate(ctx context.Context, s *session) error {
	in, err := zmtp.Dial(ctx, s.addresses.CoordinatorInput, zmtp.Options{Type: zmtp.XSub, Identity: d.identity, MaxBackoff: joinBackoff})
	if err != nil {
		return err
	}
	s.coordIn = in
	if err := in.Subscribe(nil); err != nil {
		return err
	}
	s.coordOut, err = zmtp.Dial(ctx, s.addresses.CoordinatorOutput, zmtp.Options{Type: zmtp.Push, MaxBackoff: joinBackoff})
	return err
}

// awaitCoordinator takes the READY that a coordinator publishes when all its engines have subscribed.
func (d *dialer) awaitCoordinator(ctx context.Context, s *session) error {
	defer context.AfterFunc(ctx, func() { _ = s.coordIn.Close(ctx) })()
	for {
		frames, err := s.coordIn.Recv()
		if err != nil {
			return errors.Join(err, ctx.Err())
		}
		if len(frames) == 1 && string(frames[0]) == enginecore.StatusReady {
			return nil
		}
	}
}

// expired returns a context for closing at once.
func expired() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
