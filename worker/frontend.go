package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/logs"
)

// How a worker came to be connected, as /engines tells.
const (
	joinedByHandshake = "handshake"
	joinedByAddresses = "predecessor's addresses"
)

// frontend is the actor that joins a frontend and keeps the engine connected to it. When a connection is lost it redials
// the same addresses and says HELLO at the handshake at the same time; whichever answers first wins, and an INIT replaces
// whatever there is.
type frontend struct {
	loop       *loop
	dialer     dialer
	address    string // of the handshake
	vocabulary uint32 // token ids are below it
	echoes     bool   // answers are made of the prompt
	chunk      uint64 // tokens in one output
	report     func(ipc.State)
	log        *logs.Logger
	invitedC   chan *invitation // from the goroutine that says HELLO
	openedC    chan opened      // from the one that takes up an invitation
	foundC     chan *link       // links that answered again
	lostC      chan *link       // links of which a socket ended
	session    *session
	greeting   *greeting          // nil = nobody says HELLO
	joining    context.CancelFunc // ends the goroutine that takes up an invitation; nil = there is none
	redialing  map[int]*redial
	running    sync.WaitGroup // every goroutine that f started
}

// opened is what came of taking up an invitation: the links that were missing, or why not.
type opened struct {
	*session
	err error
}

func newFrontend(l *loop, d dialer, cfg config.Config, report func(ipc.State), log *logs.Logger) *frontend {
	return &frontend{
		loop: l, dialer: d, address: cfg.HandshakeAddress, vocabulary: uint32(cfg.VocabSize),
		echoes: cfg.TokenSource == config.TokensEcho, chunk: cfg.OutputTokenChunkSize, report: report, log: log,
		invitedC:  make(chan *invitation),
		openedC:   make(chan opened),
		foundC:    make(chan *link),
		lostC:     make(chan *link),
		session:   &session{},
		redialing: map[int]*redial{},
	}
}

// run joins and stays joined until ctx ends; then it flushes what the sockets still have. With the addresses of a
// predecessor it tries those as well as the handshake.
func (f *frontend) run(ctx context.Context, predecessor *ipc.Addresses) error {
	work, stop := context.WithCancel(ctx)
	defer func() { f.close(context.Cause(ctx), stop) }()
	if predecessor != nil {
		f.session = &session{addresses: *predecessor, links: make([]*link, len(predecessor.Inputs))}
		f.loop.send(work, connectedInput{outs: f.session.outputs()})
		for i := range f.session.links {
			f.redial(work, i)
		}
	}
	f.greet(work)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.loop.retiredC:
			f.leave(stop)
			<-ctx.Done()
			return context.Cause(ctx)
		case inv := <-f.invitedC:
			f.invited(work, inv)
		case o := <-f.openedC:
			f.opened(work, o)
		case k := <-f.foundC:
			f.found(work, k)
		case k := <-f.lostC:
			f.lost(work, k)
		case <-f.greetedEnough():
			f.stopGreeting()
		}
	}
}

// invited replaces whatever there was by the addresses of an INIT. Links that are up at just those addresses stay: they
// are registered there, and a frontend may refuse a second connection with the same identity.
func (f *frontend) invited(ctx context.Context, inv *invitation) {
	f.greeting = nil
	redials := f.stopRedialing()
	addresses := ipc.Addresses{
		Inputs: inv.init.Inputs, Outputs: inv.init.Outputs,
		CoordinatorInput: inv.init.CoordinatorInput, CoordinatorOutput: inv.init.CoordinatorOutput,
	}
	s := &session{addresses: addresses, stats: inv.init.StatsPublish, links: make([]*link, len(addresses.Inputs))}
	made := f.madeAt(addresses, redials)
	for i, k := range f.session.links {
		switch {
		case k == nil:
		case samePair(f.session.addresses, addresses, i):
			s.links[i] = k
			f.session.links[i] = nil
		default:
			f.drop(ctx, i)
		}
	}
	f.session.close(expired())
	f.session = s
	f.loop.send(ctx, connectedInput{outs: s.outputs()})
	f.join(ctx, inv, *s, made)
}

// samePair says that client i is at the same place in both.
func samePair(a, b ipc.Addresses, i int) bool {
	return i < len(b.Inputs) && a.Inputs[i] == b.Inputs[i] && a.Outputs[i] == b.Outputs[i]
}

// join takes up an invitation in a goroutine. there is the session as far as it exists, made are links that belong to it and that
// nobody watches yet.
func (f *frontend) join(ctx context.Context, inv *invitation, there session, made map[int]*link) {
	there.links = slices.Clone(there.links)
	ctx, f.joining = context.WithCancel(ctx)
	f.running.Go(func() {
		s, err := f.dialer.accept(ctx, inv, there, made)
		select {
		case f.openedC <- opened{s, err}:
		case <-ctx.Done():
			if err == nil {
				s.close(expired())
			}
		}
	})
}

// opened completes the session, or has HELLO said again.
func (f *frontend) opened(ctx context.Context, o opened) {
	f.joining()
	f.joining = nil
	if o.err != nil {
		f.log.Warn().Err(o.err).Msg("frontend not joined")
		f.greet(ctx)
		return
	}
	s := f.session
	s.greeting, s.coordIn, s.coordOut = o.greeting, o.coordIn, o.coordOut
	for i, k := range o.links {
		if k != nil {
			s.links[i] = k
		}
	}
	f.loop.send(ctx, connectedInput{outs: s.outputs(), coord: s.coordOut}) // before any request is read, whose outputs go there
	for _, k := range o.links {
		if k != nil {
			f.watch(ctx, k)
		}
	}
	f.watchCoordinator(ctx, s)
	f.running.Go(func() { s.leaveHandshake(ctx) })
	if !s.complete() {
		f.greet(ctx) // a link that was lost meanwhile is looked for at its own addresses only
		return
	}
	f.ready(joinedByHandshake)
}

func (f *frontend) ready(how string) {
	f.log.Info().Str("joined", how).Strs("inputs", f.session.addresses.Inputs).Msg("engine connected")
	f.report(ipc.State{State: ipc.StateReady, Addresses: &f.session.addresses, Joined: how})
}

// lost gives up a link whose socket ended and looks for its peer.
func (f *frontend) lost(ctx context.Context, k *link) {
	if k.client >= len(f.session.links) || f.session.links[k.client] != k {
		return // a link of a session before this one
	}
	f.log.Warn().Int("client", k.client).Err(errors.Join(k.in.Err(), k.out.Err())).Msg("frontend lost")
	f.drop(ctx, k.client)
	f.report(ipc.State{State: ipc.StateReconnecting})
	f.redial(ctx, k.client)
	f.greet(ctx)
}

// drop closes a link and has the loop forget it, after everything that came over it.
func (f *frontend) drop(ctx context.Context, client int) {
	f.session.links[client].close(expired())
	f.session.links[client] = nil
	f.loop.send(ctx, lostInput{client})
}

// found takes a link that answered again; with the last of them the engine is whole.
func (f *frontend) found(ctx context.Context, k *link) {
	delete(f.redialing, k.client)
	f.session.links[k.client] = k
	f.loop.send(ctx, foundInput{k.client, k.out})
	f.watch(ctx, k)
	if !f.session.complete() {
		return
	}
	if f.greeting != nil {
		f.greeting.enough = time.After(greetOn)
	}
	f.ready(joinedByAddresses)
}

// watch reads a link's input and waits for the end of its output. Who sees one of them end tells run, once.
func (f *frontend) watch(ctx context.Context, k *link) {
	r := reader{loop: f.loop, clients: len(f.session.links), vocabulary: f.vocabulary, echoes: f.echoes, chunk: f.chunk}
	inputEnded := make(chan struct{})
	k.left.Go(func() {
		defer close(inputEnded)
		_ = r.run(ctx, k.in) // the connection keeps the reason
	})
	f.running.Go(func() {
		select {
		case <-inputEnded:
		case <-k.out.Done():
		}
		select {
		case f.lostC <- k:
		case <-ctx.Done():
		}
	})
}

// watchCoordinator reads what a coordinator sends, which independent engines have no use for, until it ends.
func (f *frontend) watchCoordinator(ctx context.Context, s *session) {
	if s.coordIn == nil {
		return
	}
	f.running.Go(func() {
		for {
			if _, err := s.coordIn.Recv(); err != nil {
				f.loop.send(ctx, coordinatorLostInput{s.coordOut})
				return
			}
		}
	})
}

// leave flushes and closes the sockets of an engine that has drained and stays.
func (f *frontend) leave(stop context.CancelFunc) {
	stop()
	ctx, cancel := context.WithTimeout(context.Background(), linger)
	defer cancel()
	f.session.close(ctx)
	f.running.Wait()
	f.closeMade()
	f.session = &session{}
	f.loop.send(context.Background(), connectedInput{})
	f.log.Info().Msg("frontend left")
	f.report(ipc.State{State: ipc.StateDrained})
}

// close flushes the sockets after the loop's last words, and ends every goroutine of f.
func (f *frontend) close(cause error, stop context.CancelFunc) {
	stop()
	<-f.loop.ended
	ctx, cancel := context.WithTimeout(context.Background(), lingerAfter(cause))
	defer cancel()
	f.session.close(ctx)
	f.running.Wait()
	f.closeMade()
}

// closeMade closes the links that were made too late. The redials have ended.
func (f *frontend) closeMade() {
	for _, r := range f.redialing {
		if k := <-r.madeC; k != nil {
			k.close(expired())
		}
	}
	clear(f.redialing)
}

// lingerAfter is how long closing may take: not long without a supervisor, no time at all for somebody who asked twice.
func lingerAfter(cause error) time.Duration {
	switch {
	case errors.Is(cause, ErrKilled):
		return 0
	case errors.Is(cause, errOrphaned):
		return orphanLinger
	default:
		return linger
	}
}
