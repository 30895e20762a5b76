package supervisor

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
)

func TestStop_Idle(t *testing.T) {
	t.Parallel()
	r := launch(t, 3, setup{roles: []string{good}})
	begun := time.Now()
	r.signals <- syscall.SIGTERM
	if err := r.end(); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("the stop took %v, want at most 1 s", took)
	}
}

// While a fleet drains it answers, and says what it does.
func TestStop_Draining(t *testing.T) {
	t.Parallel()
	r := launch(t, 2, setup{roles: []string{good, drainsSlowly}})
	r.Stop(nil)
	r.awaitState(1, StateDraining)
	if h := r.Health(r.soon()); h.Status != HealthDraining {
		t.Errorf("health = %s, want %s", h.Status, HealthDraining)
	}
	if err := r.end(); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}

// A worker that has drained may stay without its socket, to hand over its last outputs: the fleet's drain and its own alike.
func TestStop_Lingering(t *testing.T) {
	t.Parallel()
	hasty := func(t *timing) { t.leaveGrace, t.killGrace = time.Millisecond, patience }
	r := launch(t, 2, setup{roles: []string{lingers}, timing: hasty})
	r.kill(0, syscall.SIGTERM)
	if s := r.awaitState(0, StateDead); s.Reason != "its process exited with code 0" {
		t.Errorf("reason %q, want that it exited with code 0", s.Reason)
	}
	r.Stop(nil)
	if err := r.end(); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	r.awaitLog(`"engine":1,"reason":"its process exited with code 0"`)
}

// A worker that does not leave in time is killed, and what it had not ended is on the ledger.
func TestStop_Overdue(t *testing.T) {
	t.Parallel()
	for _, role := range []string{stubborn, deafReady} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			drain := func(cfg *config.Config) { cfg.ShutdownTimeout = 1 }
			r := launch(t, 2, setup{roles: []string{good, role}, config: drain, timing: func(t *timing) { t.killGrace = 200 * time.Millisecond }})
			if role == stubborn {
				arrive(t, r, 1, 3)
			}
			begun := time.Now()
			r.signals <- syscall.SIGINT
			if err := r.end(); err != nil {
				t.Errorf("Run = %v, want nil", err)
			}
			if took := time.Since(begun); took < 1200*time.Millisecond || took > 2*time.Second {
				t.Errorf("the stop took %v, want 1 s and the grace of 0.2 s", took)
			}
			r.awaitLog("it did not leave in time; its process was ended by signal 9 (killed)")
			if role == stubborn {
				r.awaitLog(`"received":3,"completed":0,"failed":3,"aborted":0,"lost":3,"message":"fleet stopped"`)
			}
		})
	}
}

func TestStop_SecondSignal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first, second os.Signal
		code          int
	}{
		{syscall.SIGTERM, syscall.SIGTERM, 143},
		{syscall.SIGINT, syscall.SIGTERM, 143},
		{syscall.SIGTERM, syscall.SIGINT, 130},
	} {
		long := func(cfg *config.Config) { cfg.ShutdownTimeout = 3600 }
		r := launch(t, 2, setup{roles: []string{stubborn}, config: long})
		r.signals <- c.first
		r.signals <- c.second
		err := r.end()
		var killed *SignalError
		if !errors.As(err, &killed) || killed.ExitCode() != c.code {
			t.Errorf("%v, %v: Run = %v, want exit code %d", c.first, c.second, err, c.code)
		}
	}
}

// A signal to a fleet that fails already is the first one: the failure stays the result.
func TestStop_SignalAfterFailure(t *testing.T) {
	t.Parallel()
	exit := func(cfg *config.Config) { cfg.OnFrontendLoss = config.LossExit }
	r := launch(t, 2, setup{roles: []string{losesFrontend, drainsSlowly}, config: exit})
	r.poke(0)
	r.signals <- syscall.SIGTERM
	if err := r.end(); !errors.Is(err, errFrontendLost) {
		t.Errorf("Run = %v, want %v", err, errFrontendLost)
	}
}

func TestStop_DuringStart(t *testing.T) {
	t.Parallel()
	for _, role := range []string{good, mute, neverReady} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			r := build(t, 8, setup{roles: []string{role}, timing: func(t *timing) { t.killGrace = 200 * time.Millisecond }}).run()
			r.await("a process was started", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.started) > 0 })
			begun := time.Now()
			r.signals <- syscall.SIGTERM
			if err := r.end(); err != nil {
				t.Errorf("Run = %v, want nil", err)
			}
			if took := time.Since(begun); took > 1500*time.Millisecond {
				t.Errorf("the stop took %v, want at most the grace", took)
			}
		})
	}
}

// A stop in the middle of a change ends the call, whichever way it goes.
func TestStop_DuringChange(t *testing.T) {
	t.Parallel()
	r := launch(t, 2, setup{roles: []string{good, slowToPrepare}})
	changed := make(chan error, 1)
	go func() { _, err := r.Patch(r.soon(), itl("7")); changed <- err }()
	r.await("the change is under way", func() bool { return len(r.changes) == 1 })
	r.Stop(nil)
	if err := r.end(); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	select {
	case <-changed: // done or gone
	case <-time.After(patience):
		t.Error("the change hangs")
	}
}

// Calls that wait for an engine which was never started end with the stop.
func TestStop_BeforeStart(t *testing.T) {
	r := build(t, 2, setup{roles: []string{good}})
	r.unstarted = r.members
	e := ask(r.members, ipc.Call{Op: ipc.OpConfig})
	e.apply(r.Fleet)
	r.drain(0)
	for i, q := range e.questions {
		select {
		case reply := <-q.replyC:
			wantGone(t, "Config", reply.err, i, "the fleet was stopped before its process was started")
		default:
			t.Errorf("engine %d: the call is open after the drain", i)
		}
	}
	if !r.done() {
		t.Error("the fleet is not done, with no process")
	}
	r.closePages()
}

func TestSignalError_ExitCode(t *testing.T) {
	if got := (&SignalError{fakeSignal{}}).ExitCode(); got != 1 {
		t.Errorf("exit code = %d for a signal without a number, want 1", got)
	}
}

type fakeSignal struct{}

func (fakeSignal) String() string { return "fake" }
func (fakeSignal) Signal()        {}
