package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/logs"
)

// Options is what a fleet needs besides its configuration.
type Options struct {
	// Signals brings SIGTERM and SIGINT: the first drains the fleet, the second kills it.
	Signals <-chan os.Signal
	// Log is the supervisor's own log, LogFormat how workers write theirs. Log must be set.
	Log       *logs.Root
	LogFormat logs.Format
	// Draining is called when the fleet begins to stop, and again where less time is left than was said, with the seconds
	// until what is unfinished is aborted; nil = nobody wants to know. It must not block.
	Draining func(timeout uint64)
	// Command returns what to start a worker with; nil = this program's worker sub-command. For tests.
	Command func() *exec.Cmd
}

var (
	errFrontendLost = errors.New("the frontend is gone")
	errStopped      = errors.New("the fleet has been stopped")
)

// Fleet is the engines and their processes. Make it with [New] and let [Fleet.Run] work; the other methods may be called
// from any goroutine, before Run has begun and after it has ended too: they wait for their context at most.
type Fleet struct {
	cfg     config.Config
	opts    Options
	timing  timing
	members []*member
	log     *logs.Logger

	events  chan event
	ended   chan struct{} // closed when Run has ended and takes no more events
	stopC   chan struct{} // closed by Stop
	stop    sync.Once
	changes chan struct{} // capacity 1: held by whoever makes a change
	change  uint64        // number of the last change; belongs to whoever holds changes
	running sync.WaitGroup

	// What follows belongs to Run.
	spawner   *spawner
	unstarted []*member        // in index order
	startC    chan struct{}    // closed while unstarted holds somebody, else nil
	calls     uint64           // number of the last call
	startup   <-chan time.Time // nil when every engine has been ready once
	killing   <-chan time.Time // nil until a drain has begun
	killAt    time.Time        // when killing fires
	faults    []*armedFault    // in the order in which they were armed
	signalled bool
	draining  bool
	result    error
}

// event is one thing that happens to the fleet. It is applied by Run, between two others.
type event interface{ apply(f *Fleet) }

// New returns the fleet that cfg describes, with a page for each engine and no process yet.
func New(cfg config.Config, o Options) (*Fleet, error) {
	if o.Command == nil {
		o.Command = command
	}
	f := &Fleet{
		cfg: cfg, opts: o, timing: defaultTiming(), log: o.Log.Target(logs.Process),
		events: make(chan event), ended: make(chan struct{}), stopC: make(chan struct{}), changes: make(chan struct{}, 1),
	}
	for i := range int(cfg.EngineCount) {
		m, err := newMember(i, cfg)
		if err != nil {
			f.closePages()
			return nil, fmt.Errorf("%s: %w", name(i, i+int(cfg.StartRank)), err)
		}
		f.members = append(f.members, m)
	}
	return f, nil
}

// Len returns the number of engines.
func (f *Fleet) Len() int { return len(f.members) }

// Stop asks Run to drain the fleet, as the first signal does, and returns at once.
func (f *Fleet) Stop(error) { f.stop.Do(func() { close(f.stopC) }) }

// Run starts the workers in index order and works until all of them have ended after a stop. It returns nil then, a
// *SignalError after a second signal, or why the fleet could not go on. It is called once.
func (f *Fleet) Run() error {
	defer f.close()
	f.spawner = newSpawner()
	if f.cfg.StartupTimeout > 0 {
		f.startup = time.After(time.Duration(f.cfg.StartupTimeout) * time.Second)
	}
	f.unstarted, f.startC = f.members, make(chan struct{})
	close(f.startC)
	for !f.done() {
		f.turn()
	}
	return f.result
}

// done says that a stop is complete.
func (f *Fleet) done() bool {
	if !f.draining {
		return false
	}
	for _, m := range f.members {
		if m.process != nil {
			return false
		}
	}
	return true
}

func (f *Fleet) turn() {
	stop := f.stopC
	if f.draining {
		stop = nil
	}
	select {
	case e := <-f.events:
		e.apply(f)
	case s := <-f.opts.Signals:
		f.signal(s)
	case <-stop:
		f.drain(f.cfg.ShutdownTimeout)
	case <-f.startC:
		f.startNext()
	case <-f.startup:
		f.startup = nil
		f.fail(fmt.Errorf("not ready after %d s: %s", f.cfg.StartupTimeout, strings.Join(f.unready(), ", ")))
	case <-f.killing:
		f.killAll("it did not leave in time")
	}
}

// startNext starts one worker for the first time. Whatever else happens is looked at between two of them.
func (f *Fleet) startNext() {
	m := f.unstarted[0]
	if f.unstarted = f.unstarted[1:]; len(f.unstarted) == 0 {
		f.startC = nil
	}
	f.spawn(m)
}

// unready names the engines that have never been ready.
func (f *Fleet) unready() []string {
	var names []string
	for _, m := range f.members {
		if !m.joinedOnce {
			names = append(names, name(m.index, m.rank))
		}
	}
	return names
}

// close ends everything that Run or the methods of f started. Processes are left only where Run panics.
func (f *Fleet) close() {
	close(f.ended)
	for _, m := range f.members {
		if m.process != nil {
			m.process.kill()
		}
		f.resolveAll(m, &GoneError{m.index, m.rank, errStopped.Error()})
	}
	f.running.Wait()
	f.spawner.stop()
	f.logLedger()
	f.closePages()
}

func (f *Fleet) closePages() {
	for _, m := range f.members {
		m.closePage()
	}
}

// logLedger says what became of every request, once all have ended.
func (f *Fleet) logLedger() {
	var sum ipc.Stats
	var lost uint64
	for _, m := range f.members {
		sum = sum.Add(m.page.Stats())
		lost += m.page.Lost.Load()
	}
	f.log.Info().Uint64("received", sum.Received).Uint64("completed", sum.Completed).Uint64("failed", sum.Failed).
		Uint64("aborted", sum.Aborted).Uint64("lost", lost).Msg("fleet stopped")
}

// send hands e to Run. Its error is errStopped where Run has ended, or that of ctx where Run did not take e before ctx
// ended; e is never applied then.
func (f *Fleet) send(ctx context.Context, e event) error {
	select {
	case f.events <- e:
		return nil
	case <-f.ended:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// late is for what is done after the caller's own time is over. Run, while it works, takes an event within milliseconds.
func (f *Fleet) late() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), f.timing.patience)
}

// sendLate hands e to Run after the caller's own time is over. Where Run doesn't take it, nothing is harmed.
func (f *Fleet) sendLate(e event) {
	ctx, cancel := f.late()
	defer cancel()
	_ = f.send(ctx, e) // as said above
}
