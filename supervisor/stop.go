package supervisor

import (
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
	if !f.draining {
		f.drain(f.cfg.ShutdownTimeout)
	}
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

// drain tells every worker to finish within timeout seconds. Those that have yet to be started, or started again, are not.
func (f *Fleet) drain(timeout uint64) {
	f.draining = true
	if f.opts.Draining != nil {
		f.opts.Draining()
	}
	f.startup = nil
	f.killing = time.After(time.Duration(timeout)*time.Second + f.timing.killGrace)
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
