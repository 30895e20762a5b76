package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/logs"
)

// killGrace is how long a worker may overstay the end of its drain.
const killGrace = 5 * time.Second

// Options is what a fleet needs besides its configuration.
type Options struct {
	// Signals brings SIGTERM and SIGINT: the first drains the fleet, the second kills it.
	Signals <-chan os.Signal
	// Log is the supervisor's own log, LogFormat how workers write theirs.
	Log       *logs.Root
	LogFormat logs.Format
	// Command returns what to start a worker with; nil = this program's worker sub-command. For tests.
	Command func() *exec.Cmd
}

// SignalError says that a second signal ended the fleet at once.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string { return fmt.Sprintf("killed by a second signal: %v", e.Signal) }

// ExitCode is the shell's code for a process that a signal ended.
func (e *SignalError) ExitCode() int {
	if s, ok := e.Signal.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return 1
}

var (
	errFrontendLost = errors.New("the frontend is gone")
	errStopped      = errors.New("stopped")
)

// Fleet is the engines and their processes. Make it with [New] and let [Fleet.Run] work; the other methods may be called
// from any goroutine, before Run has begun too.
type Fleet struct {
	cfg     config.Config
	opts    Options
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
	spawner  *spawner
	calls    uint64
	startup  <-chan time.Time // nil when every engine has been ready once
	killing  <-chan time.Time // nil until a drain has begun
	draining bool
	result   error
}

// event is one thing that happens to the fleet.
type event interface{ apply(f *Fleet) }

// New returns the fleet that cfg describes, with a page for each engine and no process yet.
func New(cfg config.Config, o Options) (*Fleet, error) {
	if o.Command == nil {
		o.Command = command
	}
	f := &Fleet{
		cfg: cfg, opts: o, log: o.Log.Target(logs.Process),
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
// *SignalError after a second signal, or why the fleet could not go on.
func (f *Fleet) Run() error {
	defer f.close()
	f.spawner = newSpawner()
	if f.cfg.StartupTimeout > 0 {
		f.startup = time.After(time.Duration(f.cfg.StartupTimeout) * time.Second)
	}
	for _, m := range f.members {
		f.spawn(m)
	}
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
	case <-f.startup:
		f.startup = nil
		f.fail(fmt.Errorf("not ready after %d s: %s", f.cfg.StartupTimeout, strings.Join(f.unready(), ", ")))
	case <-f.killing:
		f.killAll("it did not leave in time")
	}
}

func (f *Fleet) signal(s os.Signal) {
	f.log.Info().Str("signal", s.String()).Msg("signal received")
	if !f.draining {
		f.drain(f.cfg.ShutdownTimeout)
		return
	}
	f.result = &SignalError{s}
	f.killAll("killed at a second signal")
}

// fail stops the fleet because of err.
func (f *Fleet) fail(err error) {
	if f.result == nil {
		f.result = err
	}
	if !f.draining {
		f.log.Error().Err(err).Msg("stopping")
		f.drain(0)
	}
}

// drain tells every worker to finish within timeout seconds. Workers that wait to be started again are not.
func (f *Fleet) drain(timeout uint64) {
	f.draining = true
	f.startup = nil
	f.killing = time.After(time.Duration(timeout)*time.Second + killGrace)
	for _, m := range f.members {
		m.cancelRestart()
		f.tell(m, ipc.Call{Op: ipc.OpDrain, Timeout: timeout})
	}
}

func (f *Fleet) killAll(reason string) {
	for _, m := range f.members {
		if m.process != nil {
			m.reason = reason
			m.process.kill()
		}
	}
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

// close ends everything that Run or the methods of f started.
func (f *Fleet) close() {
	close(f.ended)
	for _, m := range f.members {
		f.resolveAll(m, &GoneError{m.index, m.rank, "the fleet has been stopped"})
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

// send hands e to Run and reports false where Run has ended.
func (f *Fleet) send(e event) bool {
	select {
	case f.events <- e:
		return true
	case <-f.ended:
		return false
	}
}
