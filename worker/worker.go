// Package worker is one engine in one process: it joins a frontend, feeds what the frontend sends to the engine, paces the
// engine by the host's clock, and sends what the engine emits.
//
// Everything that reaches the engine goes through the one queue of its loop, in order; the loop owns the engine and
// never waits for a socket. A worker must never know how it was started, that there are others, or what HTTP is: it
// meets its supervisor only in package ipc.
package worker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/oklog/run"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/logs"
	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/worker/engine"
	"vllm-vcr/worker/latency"
	"vllm-vcr/worker/tokens"
)

// orphanLinger is what closing may take once nobody waits for the worker any more.
const orphanLinger = 500 * time.Millisecond

// ErrKilled says that a second signal cut the shutdown short.
var ErrKilled = errors.New("second signal")

// Env is what a worker process was given at its start.
type Env struct {
	// Supervisor is the socket to the supervisor. Run closes it.
	Supervisor net.Conn
	// Page holds the engine's counters.
	Page *ipc.Page
	// Stderr takes the log lines.
	Stderr io.Writer
	// Signals brings SIGTERM and SIGINT: the first drains, the second ends Run with ErrKilled.
	Signals <-chan os.Signal
	// Crash ends the process as a crash does: at once, with nothing cleaned up.
	Crash func()
}

// Run is a worker's life: from the supervisor's first frame to the end of a drain, then it returns nil. A [PanicError] is
// a defect of the engine; any other error says why the worker could not go on.
func Run(env Env) error {
	defer env.Supervisor.Close()
	start, err := ipc.ReadStart(env.Supervisor)
	if err != nil {
		return err
	}
	filter, err := logs.ParseFilter(start.LogFilter)
	if err != nil {
		return err
	}
	root := logs.New(env.Stderr, logs.Format(start.LogFormat), filter)
	err = serve(env, start, root)
	return errors.Join(err, root.Close())
}

// serve builds the engine, tells the supervisor and runs the actors.
func serve(env Env, start ipc.Start, root *logs.Root) error {
	link := newSupervisorLink(env.Supervisor, target(root, logs.Process, start))
	l, err := newLoop(start, env, link.report, root)
	if err != nil {
		return err
	}
	defer l.alarm.close()
	front := newFrontend(l, newDialer(l, start), start.Config, link.report, target(root, logs.Process, start))
	link.enqueue(ipc.KindHello, 0, ipc.Hello{Version: ipc.Version})
	link.report(ipc.State{State: ipc.StateStarting})

	ctx, cancel := context.WithCancelCause(context.Background())
	var g run.Group
	g.Add(func() error { return l.run(ctx) }, cancel)
	g.Add(func() error { return front.run(ctx, start.Addresses) }, cancel)
	g.Add(func() error { return link.read(ctx, l, root) }, func(err error) { cancel(err); link.stop() })
	g.Add(link.write, func(error) { link.stop() })
	g.Add(func() error { return obey(ctx, env.Signals, l, seconds(start.Config.ShutdownTimeout)) }, cancel)
	return g.Run()
}

// obey drains at the first signal and gives up at the second.
func obey(ctx context.Context, signals <-chan os.Signal, l *loop, timeout time.Duration) error {
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return nil
		case s := <-signals:
			if !first {
				return fmt.Errorf("%w: %v", ErrKilled, s)
			}
			l.log.Info().Stringer("signal", s).Msg("signal received")
			l.send(ctx, drainInput{timeout})
		}
	}
}

func newLoop(start ipc.Start, env Env, report func(ipc.State), root *logs.Root) (*loop, error) {
	version, err := enginecore.ParseVersion(start.Config.VLLMVersion)
	if err != nil {
		return nil, err
	}
	recorded, err := recordedLatency(start.Config)
	if err != nil {
		return nil, err
	}
	source, err := tokens.New(start.Config.TokenSource, uint32(start.Config.VocabSize))
	if err != nil {
		return nil, err
	}
	alarm, err := newAlarm()
	if err != nil {
		return nil, err
	}
	page := env.Page
	l := &loop{
		inputs: make(chan input, maxInputs), ended: make(chan struct{}), retiredC: make(chan struct{}),
		clock: NewClock(), alarm: alarm, single: runtime.GOMAXPROCS(0) == 1, page: page, report: report, die: env.Crash,
		live: start.Config.Live, traced: recorded != nil, logDropped: root.Dropped,
		utilities: newUtilities(start.Config.TokensPerBlock),
		log:       target(root, logs.EngineCore, start),
	}
	l.strain = &strain{page: page, since: l.clock.Now()}
	l.outputs = &outputs{
		strain:  l.strain,
		version: version, rank: uint32(rank(start)),
		verbose: start.Config.LogRequests, log: target(root, logs.Engine, start),
		journal: newJournal(start.Config.RequestJournal, page),
	}
	l.engine = engine.New(engineConfig(start.Config, start.Index, source, recorded, countsOf(page)), l.outputs)
	for _, f := range start.Faults {
		l.arm(l.clock.Now(), f)
	}
	page.Generation.Store(start.Generation)
	return l, nil
}

// countsOf is where the engine before this one left off.
func countsOf(page *ipc.Page) engine.Counts {
	return engine.Counts{
		Received: page.Received.Load(), Completed: page.Completed.Load(),
		Failed: page.Failed.Load(), Aborted: page.Aborted.Load(), Merged: page.Merged.Load(),
		Faults: faultCountsOf(page),
	}
}

func recordedLatency(c config.Config) (engine.Latency, error) {
	if c.LatencyTrace == "" {
		return nil, nil
	}
	t, err := latency.Load(c.LatencyTrace, c.ExpectConfigHash)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func newDialer(l *loop, start ipc.Start) dialer {
	return dialer{
		identity: binary.LittleEndian.AppendUint16(nil, uint16(rank(start))),
		register: func(stats, coordIn, coordOut string) []byte {
			return enginecore.AppendReady(nil, readyResponse(l.outputs.version, start, stats, coordIn, coordOut))
		},
		late:     l.handshakeDelay,
		lowWater: func(client int) { l.send(context.Background(), lowWaterInput{client}) },
	}
}

func rank(s ipc.Start) uint64 { return s.Config.StartRank + uint64(s.Index) }

func target(root *logs.Root, name string, s ipc.Start) *logs.Logger {
	log := root.Target(name).With("engine", s.Index)
	if s.Config.StartRank > 0 {
		log = log.With("rank", rank(s))
	}
	return log
}

func seconds(n uint64) time.Duration { return time.Duration(n) * time.Second }
