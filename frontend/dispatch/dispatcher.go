package dispatch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"vllm-vcr/frontend/engineclient"
	"vllm-vcr/protocol/enginecore"
)

// Dispatcher gives requests to the engines of one frontend. It is made by New and ended by Close; all methods may be called from
// any goroutine.
type Dispatcher struct {
	version  enginecore.Version
	observer Observer
	options  Options
	engines  []*engine
	balancer balancer
	adapters adapters
	frontend *engineclient.Frontend
	client   *engineclient.Client
	payloads sync.Pool     // of *[]byte
	lastID   atomic.Uint32 // begins anywhere, since other frontends may ask the same engines

	startedC chan struct{} // closed when frontend and client are set
	life     context.Context
	die      context.CancelFunc
	running  sync.WaitGroup // goroutines that prepare an engine; started by events only
}

// New opens the addresses of a frontend and begins to accept engines.
func New(o Options) (*Dispatcher, error) {
	d := &Dispatcher{version: o.Version, observer: o.Observer, options: o, startedC: make(chan struct{})}
	if d.observer == nil {
		d.observer = nobody{}
	}
	d.life, d.die = context.WithCancel(context.Background())
	d.lastID.Store(rand.Uint32())
	d.adapters.ids = map[string]uint64{}
	d.balancer.loads = make([]load, max(0, o.Engines))
	for rank := range o.Engines {
		d.engines = append(d.engines, newEngine(rank, &d.balancer))
	}
	frontend, err := engineclient.Listen(o.client(engineclient.Events{
		Outputs: d.deliver, Up: d.up, Lost: d.lost, Dead: d.dead, Refused: d.refuse,
	}))
	if err != nil {
		d.die()
		return nil, fmt.Errorf("dispatch: %w", err)
	}
	d.frontend, d.client = frontend, frontend.Client(0)
	close(d.startedC)
	return d, nil
}

// Handshake is the address at which an engine on this host can say HELLO.
func (d *Dispatcher) Handshake() string { return d.frontend.Handshake() }

// Ready waits until all engines take requests for the first time; for the error see [engineclient.Frontend.Ready].
func (d *Dispatcher) Ready(ctx context.Context) error {
	if err := d.frontend.Ready(ctx); err != nil {
		return err
	}
	for _, e := range d.engines {
		select {
		case <-e.openedC:
		case <-d.life.Done():
			return fmt.Errorf("await engines: %w", ErrClosed)
		case <-ctx.Done():
			return fmt.Errorf("await engines: engine %d: adapters: %w", e.rank, context.Cause(ctx))
		}
	}
	return nil
}

// Close ends every stream with ErrClosed, sends what is queued to the engines until ctx ends, and closes all connections. It may
// be called more than once.
func (d *Dispatcher) Close(ctx context.Context) error {
	for _, e := range d.engines {
		for _, s := range e.gone(ErrClosed) {
			s.giveUp(enginecore.FinishAbort, ErrClosed, true)
		}
	}
	err := d.frontend.Close(ctx)
	d.die()
	d.running.Wait()
	for _, e := range d.engines { // that came up meanwhile
		for _, s := range e.gone(ErrClosed) {
			s.giveUp(enginecore.FinishAbort, ErrClosed, false)
		}
	}
	return err
}

// up is called when an engine has joined.
func (d *Dispatcher) up(rank int, r enginecore.ReadyResponse) {
	<-d.startedC
	e := d.engines[rank]
	incarnation := e.joined(r)
	d.observer.Joined(rank, &r)
	adapter, opened := d.adapters.openWith(e, incarnation, nil)
	switch {
	case opened:
		d.changed(rank, nil)
	case adapter != nil: // it must be told of them first
		d.running.Go(func() { d.prepare(e, incarnation) })
	}
}

// lost is called when an engine's connection has ended.
func (d *Dispatcher) lost(rank int, err error) { d.end(d.engines[rank], err) }

// dead is called when a connection said that its engine is dead. It doesn't name it: before its first output it can be told
// only where there is just one. Any other is known by the end of its connections.
func (d *Dispatcher) dead(_, rank int) {
	if rank < 0 && len(d.engines) > 1 {
		return
	}
	d.end(d.engines[max(0, rank)], errDead)
}

// end ends all that was asked of an engine.
func (d *Dispatcher) end(e *engine, cause error) {
	<-d.startedC
	e.delivery.Lock() // so that no stats come after it
	streams := e.gone(cause)
	d.observer.Left(e.rank)
	e.delivery.Unlock()
	for _, s := range streams {
		s.giveUp(enginecore.FinishError, &EngineDeadError{Rank: e.rank, Cause: cause}, false)
	}
	d.changed(e.rank, cause)
}

func (d *Dispatcher) changed(rank int, err error) {
	if d.options.Changed != nil {
		d.options.Changed(rank, err)
	}
}

func (d *Dispatcher) refuse(err error) {
	if d.options.Refused != nil {
		d.options.Refused(err)
	}
}
