package supervisor

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
)

// wantGone wants the error of an engine whose process has ended.
func wantGone(t *testing.T, call string, err error, index int, reason string) {
	t.Helper()
	var gone *GoneError
	if !errors.As(err, &gone) || gone.Index != index || !strings.Contains(gone.Reason, reason) {
		t.Errorf("%s: error %v, want engine %d gone: %s", call, err, index, reason)
	}
}

func wantSilent(t *testing.T, call string, err error, index int) {
	t.Helper()
	var silent *SilentError
	if !errors.As(err, &silent) || silent.Index != index {
		t.Errorf("%s: error %v, want engine %d silent", call, err, index)
	}
}

// Whatever way a worker ends in, it is dead within a second, told truthfully, and the others serve on.
func TestCalls_DeadEngine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ role, reason string }{
		{good, "its process was ended by signal 9 (killed)"},
		{exits, "its process exited with code 0"},
		{exits3, "its process exited with code 3"},
		{panics, "its process exited with code 2"},
		{closesSocket, "its process was ended by signal 9 (killed)"},
	} {
		t.Run(c.role, func(t *testing.T) {
			t.Parallel()
			r := launch(t, 3, setup{roles: []string{good, c.role, good}, timing: func(t *timing) { t.leaveGrace = 100 * time.Millisecond }})
			begun := time.Now()
			if c.role == good {
				r.kill(1, syscall.SIGKILL)
			} else {
				r.poke(1)
			}
			s := r.awaitState(1, StateDead)
			if took := time.Since(begun); took > time.Second {
				t.Errorf("dead after %v, want at most 1 s", took)
			}
			if s.Reason != c.reason || s.PID != 0 {
				t.Errorf("reason %q and pid %d, want %q and 0", s.Reason, s.PID, c.reason)
			}
			checkOneDead(t, r, c.reason)
		})
	}
}

// checkOneDead wants every call that asks engine 1 to say that it is gone, and the others to answer.
func checkOneDead(t *testing.T, r *rig, reason string) {
	t.Helper()
	_, err := r.Config(r.soon())
	wantGone(t, "Config", err, 1, reason)
	_, err = r.Stats(r.soon())
	wantGone(t, "Stats", err, 1, reason)
	_, err = r.Patch(r.soon(), itl("7"))
	wantGone(t, "Patch", err, 1, reason)
	wantGone(t, "ResetStats", r.ResetStats(r.soon()), 1, reason)
	_, err = r.PatchEngine(r.soon(), 1, itl("7"))
	wantGone(t, "PatchEngine", err, 1, reason)
	for _, i := range []int{0, 2} {
		if live, err := r.EngineConfig(r.soon(), i); err != nil || live.InterTokenLatency != 0 {
			t.Errorf("engine %d after a refused patch: latency %d, %v, want 0", i, live.InterTokenLatency, err)
		}
	}
	h := r.Health(r.soon())
	if h.Status != HealthDegraded || len(h.Engines) != 1 || h.Engines[0] != (EngineHealth{1, StateDead, reason}) {
		t.Errorf("health = %+v, want degraded by engine 1 alone", h)
	}
}

// A stopped engine gives errors in time, is called frozen, and comes back with nothing lost.
func TestCalls_FrozenEngine(t *testing.T) {
	t.Parallel()
	r := launch(t, 4, setup{roles: []string{good}})
	arrive(t, r, 1, 5)
	r.suspend(1)
	r.suspend(2)
	_, err := r.Stats(r.within(700 * time.Millisecond))
	wantSilent(t, "Stats", err, 1)
	if s := r.awaitState(1, StateFrozen); s.Reason != "it did not answer a stats call" {
		t.Errorf("reason %q, want that it did not answer a stats call", s.Reason)
	}
	r.awaitState(2, StateFrozen)

	begun := time.Now()
	_, err = r.Config(r.soon())
	wantSilent(t, "Config", err, 1)
	if took := time.Since(begun); took < 900*time.Millisecond || took > 1700*time.Millisecond {
		t.Errorf("a call to two frozen engines took %v, want about 1 s", took)
	}
	if h := r.Health(r.soon()); h.Status != HealthDegraded || len(h.Engines) != 2 || h.Engines[0].State != StateFrozen {
		t.Errorf("health = %+v, want degraded by two frozen engines", h)
	}
	_, err = r.Patch(r.soon(), itl("7"))
	wantSilent(t, "Patch", err, 1)

	r.kill(1, syscall.SIGCONT)
	r.kill(2, syscall.SIGCONT)
	r.await("all is well", func() bool { return r.Health(r.soon()).Status == HealthOK })
	if s := r.look(1); s.Reason != "" || s.Stats.Received != 5 || s.Stats.Running != 5 {
		t.Errorf("engine 1 = %+v, want 5 running and no reason", s)
	}
	if live, err := r.Config(r.soon()); err != nil || live.InterTokenLatency != 0 {
		t.Errorf("Config = %d, %v, want 0: the patch was refused", live.InterTokenLatency, err)
	}
	if _, err := r.Patch(r.soon(), itl("8")); err != nil {
		t.Errorf("Patch after all came back: %v", err)
	}
}

func arrive(t *testing.T, r *rig, index int, n uint64) {
	t.Helper()
	if _, err := r.call(r.soon(), index, ipc.Call{Op: opArrive, Timeout: n}); err != nil {
		t.Fatalf("engine %d: %v", index, err)
	}
}

// An engine that dies while it is frozen is dead, of what killed it, and its successor is not frozen.
func TestCalls_FrozenThenDead(t *testing.T) {
	t.Parallel()
	r := launch(t, 1, setup{roles: []string{freezes, good}, config: onFailure})
	_, _ = r.call(r.within(600*time.Millisecond), 0, ipc.Call{Op: opPoke})
	r.awaitState(0, StateFrozen)
	r.kill(0, syscall.SIGKILL)
	s := r.awaitState(0, StateReady)
	if s.Reason != "" || s.Restarts != 1 {
		t.Errorf("engine 0 = %+v, want it started again and well", s)
	}
	if _, err := r.Config(r.soon()); err != nil {
		t.Errorf("Config after the restart: %v", err)
	}
}

// All were asleep, the supervisor's host too: nobody is called dead.
func TestCalls_AllStoppedAndContinued(t *testing.T) {
	t.Parallel()
	r := launch(t, 3, setup{roles: []string{good}})
	for i := range 3 {
		r.suspend(i)
	}
	if h := r.Health(r.soon()); h.Status != HealthOK && h.Status != HealthDegraded {
		t.Errorf("health = %s", h.Status)
	}
	for i := range 3 {
		r.kill(i, syscall.SIGCONT)
	}
	r.await("all is well", func() bool { return r.Health(r.soon()).Status == HealthOK })
	for i := range 3 {
		if s := r.look(i); s.Restarts != 0 || s.Lost != 0 {
			t.Errorf("engine %d = %+v, want it undisturbed", i, s)
		}
	}
}

// Half a frame and then nothing is a silent worker. Its calls end by their deadline, and so does the fleet.
func TestCalls_CutFrame(t *testing.T) {
	t.Parallel()
	for _, role := range []string{cut, quiet} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			r := launch(t, 2, setup{roles: []string{good, role}})
			_, err := r.call(r.within(600*time.Millisecond), 1, ipc.Call{Op: opPoke})
			wantSilent(t, "poke", err, 1)
			r.awaitState(1, StateFrozen)
			if _, err := r.EngineConfig(r.soon(), 0); err != nil {
				t.Errorf("engine 0: %v", err)
			}
		})
	}
}

// Answers that nobody waits for are dropped, told once, and confuse no later call.
func TestCalls_StrayAnswers(t *testing.T) {
	t.Parallel()
	for _, role := range []string{answersTwice, answersOther} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			r := launch(t, 2, setup{roles: []string{good, role}})
			for i := range uint64(20) {
				arrive(t, r, 1, 1)
				s, err := r.EngineStats(r.soon(), 1)
				if err != nil || s.Received != i+1 {
					t.Fatalf("Stats = %d, %v, want %d", s.Received, err, i+1)
				}
				if _, err := r.EngineConfig(r.soon(), 1); err != nil {
					t.Fatal(err)
				}
			}
			r.Stop(nil)
			_ = r.end()
			r.awaitLog("fleet stopped")
			if n := strings.Count(r.log.String(), "answer dropped"); n != 1 {
				t.Errorf("stray answers were told %d times, want once", n)
			}
		})
	}
	t.Run(neverAnswers, func(t *testing.T) {
		t.Parallel()
		r := launch(t, 1, setup{roles: []string{neverAnswers}})
		_, err := r.Config(r.within(100 * time.Millisecond))
		wantSilent(t, "Config", err, 0)
	})
}

// An answer that comes after its caller has left is not taken for the answer to a later call.
func TestCalls_LateAnswer(t *testing.T) {
	t.Parallel()
	r := launch(t, 2, setup{roles: []string{good, slow}, timing: func(t *timing) { t.frozenAfter = time.Minute }})
	_, err := r.EngineConfig(r.within(50*time.Millisecond), 1)
	wantSilent(t, "Config", err, 1)
	answer, err := r.call(r.soon(), 1, ipc.Call{Op: ipc.OpStats})
	if err != nil || answer.Stats == nil || answer.Config != nil {
		t.Errorf("answer = %+v, %v, want counters", answer, err)
	}
}

// Somebody who leaves at once says nothing about a worker.
func TestCalls_ImpatientCaller(t *testing.T) {
	t.Parallel()
	r := launch(t, 1, setup{roles: []string{slow}})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = r.Config(ctx)
	_, _ = r.Config(r.within(50 * time.Millisecond))
	if s := r.look(0); s.State != StateReady {
		t.Errorf("engine is %s after an impatient call, want %s", s.State, StateReady)
	}
}

// One slow worker makes calls as slow as itself, not slower, and the calls to others not at all.
func TestCalls_SlowEngine(t *testing.T) {
	t.Parallel()
	r := launch(t, 4, setup{roles: []string{good, slow, slow, good}})
	begun := time.Now()
	var calls sync.WaitGroup
	var answered atomic.Bool // the call to all
	calls.Go(func() {
		if _, err := r.Config(r.soon()); err != nil {
			t.Errorf("Config: %v", err)
		}
		answered.Store(true)
		if took := time.Since(begun); took < slowAnswer || took > 2*slowAnswer {
			t.Errorf("Config took %v, want the slowest worker's %v", took, slowAnswer)
		}
	})
	calls.Go(func() {
		if _, err := r.EngineConfig(r.soon(), 3); err != nil {
			t.Errorf("EngineConfig: %v", err)
		}
		if answered.Load() {
			t.Errorf("a call to a quick engine took %v, longer than one to a slow one", time.Since(begun))
		}
	})
	calls.Wait()
}

// A stopped worker takes no bytes. That makes nobody wait, however large the change that it is sent, and when it goes on it
// has its link whole.
func TestCalls_LargeFrameToStoppedEngine(t *testing.T) {
	t.Parallel()
	r := launch(t, 2, setup{roles: []string{good}})
	r.suspend(1)
	large := config.Patch{{Key: "inter_token_latency", Raw: strings.Repeat(" ", 2<<20) + "1"}}
	begun := time.Now()
	_, err := r.PatchEngine(r.within(600*time.Millisecond), 1, large)
	wantSilent(t, "PatchEngine", err, 1)
	if _, err := r.EngineConfig(r.soon(), 0); err != nil {
		t.Errorf("engine 0: %v", err)
	}
	if took := time.Since(begun); took > 1500*time.Millisecond {
		t.Errorf("it took %v, want little more than the call's 600 ms", took)
	}
	r.kill(1, syscall.SIGCONT)
	r.await("all is well", func() bool { return r.Health(r.soon()).Status == HealthOK })
	if s := r.look(1); s.Restarts != 0 || s.State != StateReady {
		t.Errorf("engine 1 = %+v, want it undisturbed", s)
	}
}

// What is too large for a frame costs the call, not the worker.
func TestCalls_OversizedCall(t *testing.T) {
	t.Parallel()
	r := launch(t, 2, setup{roles: []string{good}})
	_, err := r.Patch(r.soon(), config.Patch{{Key: "inter_token_latency", Raw: strings.Repeat(" ", ipc.MaxFrame)}})
	if !errors.Is(err, ipc.ErrFrameSize) {
		t.Errorf("Patch: error %v, want %v", err, ipc.ErrFrameSize)
	}
	if _, err := r.Patch(r.soon(), itl("3")); err != nil {
		t.Errorf("Patch after it: %v", err)
	}
}

// A worker that lets frame after frame lie is ended, and not fed for ever.
func TestCalls_UnreadFrames(t *testing.T) {
	t.Parallel()
	r := launch(t, 1, setup{roles: []string{deafReady}})
	filler := ipc.Call{Op: ipc.OpLog, Filter: strings.Repeat("x", 1<<19)}
	_ = r.read(r.soon(), func() {
		for range maxPending + 2 {
			r.tell(r.members[0], filler)
		}
	})
	if s := r.awaitState(0, StateDead); !strings.HasPrefix(s.Reason, "it left 16 frames unread; ") {
		t.Errorf("reason %q, want that frames were left unread", s.Reason)
	}
}

// A call ends when the process it was sent to does, not at its deadline.
func TestCalls_DeathEndsOpenCalls(t *testing.T) {
	t.Parallel()
	r := launch(t, 1, setup{roles: []string{quiet}})
	var calls sync.WaitGroup
	for range 3 {
		calls.Go(func() {
			_, err := r.call(r.soon(), 0, ipc.Call{Op: opPoke})
			wantGone(t, "poke", err, 0, "signal 9")
		})
	}
	r.await("the calls are open", func() bool {
		open := 0
		_ = r.read(r.soon(), func() {
			if open = len(r.members[0].queue); r.members[0].owing != nil {
				open++
			}
		})
		return open == 3
	})
	r.kill(0, syscall.SIGKILL)
	calls.Wait()
}

// Many callers of all kinds at once: every call is answered, and soon.
func TestCalls_ManyAtOnce(t *testing.T) {
	t.Parallel()
	r := launch(t, 3, setup{roles: []string{good}})
	var calls sync.WaitGroup
	for range 16 {
		calls.Go(func() {
			for range 20 {
				_, err := r.Config(r.soon())
				_, err2 := r.Stats(r.soon())
				if err := errors.Join(err, err2); err != nil {
					t.Error(err)
				}
				if n := len(r.Engines(r.soon())); n != 3 {
					t.Errorf("%d engines, want 3", n)
				}
			}
		})
	}
	calls.Wait()
}
