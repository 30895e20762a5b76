package supervisor

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
)

// A drain that was asked for ends the fleet as a signal does, and tells how much there was to finish, whatever state the
// engines are in.
func TestDrain(t *testing.T) {
	t.Parallel()
	r := launch(t, 3, setup{roles: []string{good}, timing: func(t *timing) { t.killGrace = 300 * time.Millisecond }})
	arrive(t, r, 0, 2)
	arrive(t, r, 1, 3)
	arrive(t, r, 2, 4)
	r.kill(1, syscall.SIGKILL)
	r.awaitState(1, StateDead)
	r.suspend(2)
	begun, err := r.Drain(r.soon(), 0)
	if err != nil || begun.Unfinished != 6 {
		t.Errorf("Drain = %+v, %v, want 6: those of the living", begun, err)
	}
	if err := r.end(); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	r.awaitLog(`"engine":2,"reason":"it did not leave in time; its process was ended by signal 9 (killed)"`)
	r.awaitLog(`"received":9,"completed":0,"failed":9,"aborted":0,"lost":9,"message":"fleet stopped"`)
	if _, err := r.Drain(r.soon(), 0); !errors.Is(err, errStopped) {
		t.Errorf("Drain of a fleet that has stopped: %v, want %v", err, errStopped)
	}
}

// Another drain, or a signal, can make a drain end sooner and not later.
func TestDrain_Again(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name          string
		first, second uint64
	}{
		{"sooner", 3600, 1},
		{"later", 1, 3600},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var told timeouts
			s := setup{roles: []string{stubborn}, timing: func(t *timing) { t.killGrace = 100 * time.Millisecond }}
			r := build(t, 1, s)
			r.opts.Draining = func(timeout uint64) { told.add(timeout) }
			r.run()
			r.awaitState(0, StateReady)
			arrive(t, r, 0, 1)
			begun := time.Now()
			for _, timeout := range []uint64{tt.first, tt.second} {
				if begun, err := r.Drain(r.soon(), timeout); err != nil || begun != (ipc.Drain{Unfinished: 1, Timeout: min(timeout, tt.first)}) {
					t.Errorf("Drain = %+v, %v, want 1 unfinished, and the shorter time", begun, err)
				}
			}
			if stats, err := r.Stats(r.soon()); err != nil || stats.Running != 1 {
				t.Errorf("Stats while it drains: %+v, %v, want 1 running", stats, err)
			}
			if err := r.end(); err != nil {
				t.Errorf("Run = %v, want nil", err)
			}
			if took := time.Since(begun); took < 1100*time.Millisecond || took > patience/2 {
				t.Errorf("the drain took %v, want 1 s and the grace of 0.1 s", took)
			}
			want := slices.Compact([]uint64{tt.first, min(tt.first, tt.second)})
			if got := told.list(); !slices.Equal(got, want) {
				t.Errorf("the front end was told of %d s, want %d", got, want)
			}
		})
	}
}

// The first signal is no second one only because a drain was asked for before it.
func TestDrain_ThenSignals(t *testing.T) {
	t.Parallel()
	long := func(cfg *config.Config) { cfg.ShutdownTimeout = 3600 }
	r := launch(t, 1, setup{roles: []string{stubborn}, config: long})
	if _, err := r.Drain(r.soon(), 3600); err != nil {
		t.Fatal(err)
	}
	r.signals <- syscall.SIGTERM
	r.awaitLog("signal received")
	if _, err := r.Stats(r.soon()); err != nil {
		t.Errorf("Stats after the first signal: %v, want the drain to go on", err)
	}
	r.signals <- syscall.SIGTERM
	var killed *SignalError
	if err := r.end(); !errors.As(err, &killed) {
		t.Errorf("Run = %v, want the second signal", err)
	}
}

// One engine that drains leaves the others alone, can still be asked and changed, and ends with the fleet.
func TestDrainEngine(t *testing.T) {
	t.Parallel()
	r := launch(t, 3, setup{roles: []string{good}, config: onFailure})
	arrive(t, r, 1, 5)
	if begun, err := r.DrainEngine(r.soon(), 1, 60); err != nil || begun != (ipc.Drain{Unfinished: 5, Timeout: 60}) {
		t.Errorf("DrainEngine = %+v, %v, want 5, and 60 s", begun, err)
	}
	if s := r.awaitState(1, StateDraining); s.PID == 0 {
		t.Error("no process while it drains")
	}
	if begun, err := r.DrainEngine(r.soon(), 1, 0); err != nil || begun.Unfinished != 0 {
		t.Errorf("DrainEngine again = %+v, %v, want none unfinished", begun, err)
	}
	r.awaitState(1, StateDrained)
	h := r.Health(r.soon())
	if h.Status != HealthDegraded || len(h.Engines) != 1 || h.Engines[0] != (EngineHealth{Index: 1, State: StateDrained}) {
		t.Errorf("health = %+v, want degraded by the drained engine alone", h)
	}
	if stats, err := r.Stats(r.soon()); err != nil || stats != (ipc.Stats{Received: 5, Aborted: 5}) {
		t.Errorf("Stats = %+v, %v, want 5 received and aborted", stats, err)
	}
	if live, err := r.Patch(r.soon(), itl("7")); err != nil || live.InterTokenLatency != 7 {
		t.Errorf("Patch = %d, %v, want 7", live.InterTokenLatency, err)
	}
	if s := r.look(1); s.Restarts != 0 {
		t.Errorf("%d restarts, want none: a drain is no failure", s.Restarts)
	}
	r.kill(1, syscall.SIGKILL)
	if s := r.awaitState(1, StateReady); s.Restarts != 1 {
		t.Errorf("%d restarts of a drained engine that was killed, want 1", s.Restarts)
	}
	r.Stop(nil)
	if err := r.end(); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}

func TestDrainEngine_DeadAndFrozen(t *testing.T) {
	t.Parallel()
	r := launch(t, 2, setup{roles: []string{good}})
	r.kill(0, syscall.SIGKILL)
	r.awaitState(0, StateDead)
	_, err := r.DrainEngine(r.soon(), 0, 0)
	wantGone(t, "DrainEngine", err, 0, "signal 9")
	r.suspend(1)
	_, err = r.DrainEngine(r.within(600*time.Millisecond), 1, 0)
	wantSilent(t, "DrainEngine", err, 1)
	if want := "; it drains as soon as it goes on"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("DrainEngine of a frozen engine: %v, want %q at its end", err, want)
	}
	r.awaitState(1, StateFrozen)
	r.kill(1, syscall.SIGCONT)
	r.awaitState(1, StateDrained) // it was asked, and does so once it can
}

// An engine that is drained before it has joined is not waited for.
func TestDrainEngine_WhileStarting(t *testing.T) {
	t.Parallel()
	r := build(t, 2, setup{roles: []string{good, neverReady}}).run()
	r.awaitState(0, StateReady)
	if strings.Contains(r.log.String(), "every engine is ready") {
		t.Error("the start is over without engine 1")
	}
	if _, err := r.DrainEngine(r.soon(), 1, 0); err != nil {
		t.Fatal(err)
	}
	r.awaitLog("every engine is ready")
	r.kill(1, syscall.SIGKILL)
	r.awaitState(1, StateDead) // and the fleet goes on
	if _, err := r.EngineStats(r.soon(), 0); err != nil {
		t.Errorf("EngineStats of the other: %v", err)
	}
}

// A reset of one engine is none of another one's business.
func TestResetEngine(t *testing.T) {
	t.Parallel()
	r := launch(t, 3, setup{roles: []string{good}})
	for i := range 3 {
		arrive(t, r, i, 4)
	}
	if _, err := r.Patch(r.soon(), itl("9")); err != nil {
		t.Fatal(err)
	}
	if live, err := r.ResetEngineConfig(r.soon(), 1); err != nil || live.InterTokenLatency != 0 {
		t.Errorf("ResetEngineConfig = %d, %v, want 0", live.InterTokenLatency, err)
	}
	if err := r.ResetEngineStats(r.soon(), 2); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ latency, received uint64 }{{9, 4}, {0, 4}, {9, 0}} {
		live, err := r.EngineConfig(r.soon(), i)
		if err != nil || live.InterTokenLatency != want.latency {
			t.Errorf("engine %d: latency %d, %v, want %d", i, live.InterTokenLatency, err, want.latency)
		}
		stats, err := r.EngineStats(r.soon(), i)
		if err != nil || stats.Received != want.received || stats.Running != 4 {
			t.Errorf("engine %d: %+v, %v, want %d received and 4 running", i, stats, err, want.received)
		}
	}
	r.kill(0, syscall.SIGKILL)
	r.awaitState(0, StateDead)
	if err := r.ResetEngineStats(r.soon(), 1); err != nil {
		t.Errorf("ResetEngineStats beside a dead engine: %v", err)
	}
	wantGone(t, "ResetEngineStats", r.ResetEngineStats(r.soon(), 0), 0, "signal 9")
	_, err := r.ResetEngineConfig(r.soon(), 0)
	wantGone(t, "ResetEngineConfig", err, 0, "signal 9")
}

// timeouts are what a front end was told, in seconds.
type timeouts struct {
	mu   sync.Mutex
	told []uint64
}

func (l *timeouts) add(timeout uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, timeout)
}
func (l *timeouts) list() []uint64 { l.mu.Lock(); defer l.mu.Unlock(); return slices.Clone(l.told) }
