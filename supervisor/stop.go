package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"vllm-vcr/ipc"
)

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

// signal drains at the first signal, unless the fleet is leaving anyway, and kills at the second.
func (f *Fleet) signal(s os.Signal) {
	f.log.Info().Str("signal", s.String()).Msg("signal received")
	if f.signalled {
		f.result = &SignalError{s}
		f.killAll("killed at a second signal")
		return
	}
	f.signalled = true
	f.drain(f.cfg.ShutdownTimeout)
}

// Drain stops the fleet as the first signal does, with timeout in seconds. Run ends when all have ended.
func (f *Fleet) Drain(ctx context.Context, timeout uint64) (ipc.Drain, error) {
	e := drainEvent{timeout, make(chan ipc.Drain, 1)}
	if err := f.send(ctx, e); err != nil {
		return ipc.Drain{}, err
	}
	return <-e.begunC, nil
}

type drainEvent struct {
	timeout uint64
	begunC  chan ipc.Drain // capacity 1
}

func (e drainEvent) apply(f *Fleet) {
	var unfinished uint64
	for _, m := range f.members {
		s := m.page.Stats()
		unfinished += s.Running + s.Waiting
	}
	f.log.Info().Uint64("unfinished", unfinished).Uint64("timeout", e.timeout).Msg("drain asked for")
	f.drain(e.timeout)
	e.begunC <- ipc.Drain{Unfinished: unfinished, Timeout: ipc.WholeSeconds(time.Until(f.killAt) - f.timing.killGrace)}
}

// DrainEngine has one engine refuse new requests, finish those it has within timeout seconds, abort the rest and leave its
// frontend. Its process stays and answers calls. An engine that does not answer in time drains when it goes on, which the error says.
// index must be below Len.
func (f *Fleet) DrainEngine(ctx context.Context, index int, timeout uint64) (ipc.Drain, error) {
	answers, errs := f.fanOut(ctx, f.members[index:index+1], ipc.Call{Op: ipc.OpDrain, Timeout: timeout, Stay: true})
	var silent *SilentError
	switch {
	case errors.As(errs[0], &silent):
		return ipc.Drain{}, withReport(silent, "it drains as soon as it goes on")
	case errs[0] != nil:
		return ipc.Drain{}, errs[0]
	case answers[0].Drain == nil:
		return ipc.Drain{}, fmt.Errorf("%s answered a drain without saying what it began with", name(index, f.members[index].rank))
	}
	return *answers[0].Drain, nil
}

// fail stops the fleet because of err. A fleet that is leaving has no use for reasons: frontends often go first.
func (f *Fleet) fail(err error) {
	if f.draining {
		return
	}
	f.result = err
	f.log.Error().Err(err).Msg("stopping")
	f.drain(0)
}

// drain tells every worker to finish within timeout seconds. Those that have yet to be started, or started again, are not. A
// drain that is under way can be cut shorter by another one, and not be made longer.
func (f *Fleet) drain(timeout uint64) {
	grace := time.Duration(timeout)*time.Second + f.timing.killGrace
	killAt := time.Now().Add(grace)
	if f.draining && !killAt.Before(f.killAt) {
		return
	}
	f.draining = true
	if f.opts.Draining != nil {
		f.opts.Draining(timeout)
	}
	f.startup = nil
	f.killing, f.killAt = time.After(grace), killAt
	for _, m := range f.unstarted {
		m.state, m.reason = StateDead, "the fleet was stopped before its process was started"
		f.resolveAll(m, m.gone())
	}
	f.unstarted, f.startC = nil, nil
	for _, m := range f.members {
		m.cancelRestart()
		f.tell(m, ipc.Call{Op: ipc.OpDrain, Timeout: timeout})
	}
}

func (f *Fleet) killAll(reason string) {
	for _, m := range f.members {
		if m.process != nil {
			m.process.blame = reason
			m.process.kill()
		}
	}
}
