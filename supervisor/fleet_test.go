package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/logs"
)

func TestFleet_Run_EightEngines(t *testing.T) {
	t.Parallel()
	for range 3 {
		r := launch(t, 8, setup{roles: []string{good}})
		for i, e := range r.Engines(r.soon()) {
			if e.Index != i || e.Rank != i || e.PID == 0 || e.State != StateReady || e.Joined != joinedBy {
				t.Errorf("engine %d = %+v, want it ready under its own index", i, e)
			}
		}
		r.Stop(nil)
		if err := r.end(); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	}
}

// Workers are told all there is to know, and each its own index.
func TestFleet_Run_InIndexOrder(t *testing.T) {
	t.Parallel()
	r := launch(t, 4, setup{roles: []string{good}})
	for i := range 4 {
		if pid := r.look(i).PID; pid != r.started[i].Process.Pid {
			t.Errorf("engine %d runs as process %d, want %d, which was started in its turn", i, pid, r.started[i].Process.Pid)
		}
	}
}

func TestFleet_Run_StartFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		role string
		want string
	}{
		{diesAtOnce, "engine 1 died before it was ready: its process exited with code 3"},
		{greetsThenDies, "engine 1 died before it was ready: its process exited with code 3"},
		{wrongVersion, "engine 1 died before it was ready: hello: protocol mismatch: the worker speaks version 7, this supervisor 1"},
		{garbage, "engine 1 died before it was ready: frame kind 3: *ipc.State"},
		{strangeKind, "engine 1 died before it was ready: frame kind 99, want hello, state or answer"},
		{strangeState, `engine 1 died before it was ready: state "dead", want starting, ready`},
		{huge, "engine 1 died before it was ready: frame length out of range: 4294967295, want 9 to 8388608"},
	} {
		t.Run(c.role, func(t *testing.T) {
			t.Parallel()
			// Restarts are for engines that have been of use; one that never was is told at once.
			never := func(t *timing) { t.leaveGrace = time.Hour }
			r := build(t, 3, setup{roles: []string{good, c.role, good}, config: onFailure, timing: never}).run()
			if err := r.end(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("Run = %v, want %s…", err, c.want)
			}
		})
	}
}

func TestFleet_Run_StartupTimeout(t *testing.T) {
	t.Parallel()
	for _, role := range []string{mute, neverReady} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			short := func(cfg *config.Config) { cfg.StartupTimeout, cfg.StartRank = 1, 4 }
			begun := time.Now()
			r := build(t, 3, setup{roles: []string{good, role, role}, config: short}).run()
			err := r.end()
			if want := "not ready after 1 s: engine 1 (rank 5), engine 2 (rank 6)"; err == nil || err.Error() != want {
				t.Errorf("Run = %v, want %s", err, want)
			}
			if took := time.Since(begun); took < time.Second {
				t.Errorf("ended after %v, want at least 1 s", took)
			}
		})
	}
}

func TestFleet_Run_NothingToStart(t *testing.T) {
	t.Parallel()
	missing := func() *exec.Cmd { return exec.Command("/nonexistent/vllm-vcr") }
	r := build(t, 3, setup{roles: []string{good}, command: missing}).run()
	if err := r.end(); err == nil || !strings.Contains(err.Error(), "engine 0 died before it was ready: start worker: ") {
		t.Errorf("Run = %v, want one that says why engine 0 did not start", err)
	}
	if len(r.started) != 1 {
		t.Errorf("%d processes were tried, want 1: a fleet that fails starts no more", len(r.started))
	}
}

// When the start of one worker fails, those after it are not started, however long those before it take to leave.
func TestFleet_Run_StartFailsInTheMiddle(t *testing.T) {
	t.Parallel()
	n := 0
	second := func() *exec.Cmd {
		if n++; n == 2 {
			return exec.Command("/nonexistent/vllm-vcr")
		}
		return puppetCommand(drainsSlowly)
	}
	r := build(t, 8, setup{roles: []string{good}, command: second}).run()
	if err := r.end(); err == nil || !strings.HasPrefix(err.Error(), "engine 1 died before it was ready: start worker: ") {
		t.Errorf("Run = %v, want one that says why engine 1 did not start", err)
	}
	if len(r.started) != 2 {
		t.Errorf("%d processes were tried, want 2", len(r.started))
	}
}

func TestFleet_StopBeforeRun(t *testing.T) {
	t.Parallel()
	r := build(t, 3, setup{roles: []string{good}})
	r.Stop(nil)
	r.Stop(errors.New("twice does no harm"))
	r.run()
	if err := r.end(); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}

// A method that is called while Run does not work ends with its context and harms nothing.
func TestFleet_CallsOutsideRun(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]bool{"before": true, "after": false} {
		t.Run(name, func(t *testing.T) {
			r := build(t, 2, setup{roles: []string{good}, timing: func(t *timing) { t.patience = 50 * time.Millisecond }})
			if name == "after" {
				r.run().Stop(nil)
				_ = r.end()
			} else {
				t.Cleanup(r.closePages)
			}
			for call, err := range outside(r) {
				var s *SilentError
				var g *GoneError
				if silent && !errors.As(err, &s) || !silent && !errors.As(err, &g) {
					t.Errorf("%s = %v, want the error of a silent engine before Run, of a gone one after it", call, err)
				}
			}
			if list := r.Engines(r.within(time.Minute)); list == nil || len(list) > 0 {
				t.Errorf("Engines = %v, want a list of none", list)
			}
			want := map[bool]string{true: HealthStarting, false: HealthDraining}[silent]
			if got := r.Health(r.within(time.Minute)).Status; got != want {
				t.Errorf("Health = %s, want %s", got, want)
			}
			if got, err := r.SetFilter(r.soon(), "warn"); got != "warn" || err != nil || r.Filter() != "warn" {
				t.Errorf("SetFilter = %q, %v, then %q, want warn", got, err, r.Filter())
			}
		})
	}
}

// outside makes every call that asks engines.
func outside(r *rig) map[string]error {
	errs := map[string]error{}
	soon := func() context.Context { return r.within(30 * time.Millisecond) }
	_, errs["Config"] = r.Config(soon())
	_, errs["EngineConfig"] = r.EngineConfig(soon(), 1)
	_, errs["Patch"] = r.Patch(soon(), itl("1"))
	_, errs["PatchEngine"] = r.PatchEngine(soon(), 1, itl("1"))
	_, errs["ResetConfig"] = r.ResetConfig(soon())
	_, errs["Stats"] = r.Stats(soon())
	_, errs["EngineStats"] = r.EngineStats(soon(), 1)
	errs["ResetStats"] = r.ResetStats(soon())
	return errs
}

// While an engine has yet to say hello, calls wait for it; so they do while it joins its frontend.
func TestFleet_CallsWhileStarting(t *testing.T) {
	t.Parallel()
	r := build(t, 2, setup{roles: []string{neverReady}}).run()
	if _, err := r.Patch(r.soon(), itl("7")); err != nil {
		t.Fatalf("Patch while the engines start: %v", err)
	}
	live, err := r.Config(r.soon())
	if err != nil || live.InterTokenLatency != 7 {
		t.Errorf("Config = %d, %v, want 7", live.InterTokenLatency, err)
	}
	h := r.Health(r.soon())
	want := Health{HealthStarting, []EngineHealth{{0, StateStarting, ""}, {1, StateStarting, ""}}}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("health (-want +got):\n%s", diff)
	}
}

func TestFleet_OnFrontendLoss(t *testing.T) {
	t.Parallel()
	t.Run("exit", func(t *testing.T) {
		exit := func(cfg *config.Config) { cfg.OnFrontendLoss = config.LossExit }
		r := launch(t, 2, setup{roles: []string{good, losesFrontend}, config: exit})
		r.poke(1)
		if err := r.end(); !errors.Is(err, errFrontendLost) || !strings.HasPrefix(err.Error(), "engine 1: ") {
			t.Errorf("Run = %v, want engine 1: %v", err, errFrontendLost)
		}
	})
	t.Run("reconnect", func(t *testing.T) {
		r := launch(t, 2, setup{roles: []string{good, losesFrontend}})
		r.poke(1)
		r.awaitState(1, StateReconnecting)
		if got := r.Health(r.soon()).Status; got != HealthDegraded {
			t.Errorf("health = %s, want %s", got, HealthDegraded)
		}
	})
	t.Run("exit, but the fleet leaves anyway", func(t *testing.T) {
		exit := func(cfg *config.Config) { cfg.OnFrontendLoss = config.LossExit }
		r := launch(t, 1, setup{roles: []string{drainsSlowly}, config: exit})
		r.Stop(nil)
		r.awaitState(0, StateDraining)
		_ = r.read(r.soon(), func() {
			r.members[0].state = StateReady
			r.reported(r.members[0], ipc.State{State: ipc.StateReconnecting})
		})
		if err := r.end(); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	})
}

func TestFleet_SetFilter(t *testing.T) {
	t.Parallel()
	r := launch(t, 3, setup{roles: []string{good, freezes, exits}})
	r.poke(1)
	r.poke(2)
	r.awaitState(2, StateDead)
	if got, err := r.SetFilter(r.soon(), "debug"); got != "debug" || err != nil {
		t.Fatalf("SetFilter = %q, %v, want debug: a dead and a silent engine don't matter", got, err)
	}
	heard := func(index int) int { return int(r.members[index].page.HeldNanos.Load()) }
	r.await("engine 0 has the filter", func() bool { return heard(0) == len("debug") })
	if _, err := r.SetFilter(r.soon(), "error"); err != nil {
		t.Fatal(err)
	}
	if got := heard(1); got != 0 {
		t.Errorf("a stopped engine heard of a filter of length %d", got)
	}
	r.kill(1, syscall.SIGCONT)
	r.await("the engine that woke up has the filter", func() bool { return heard(1) == len("error") })
	if _, err := r.SetFilter(r.soon(), "=;"); !errors.Is(err, logs.ErrFilter) || r.Filter() != "error" {
		t.Errorf("SetFilter of nonsense = %v, then %q, want %v, then error", err, r.Filter(), logs.ErrFilter)
	}
}

func TestFleet_PanicLeavesNoProcess(t *testing.T) {
	t.Parallel()
	r := build(t, 2, setup{roles: []string{good}})
	caught := make(chan any, 1)
	go func() {
		defer func() { caught <- recover() }()
		_ = r.Run()
	}()
	r.await("every engine is ready", func() bool { return r.Health(r.soon()).Status == HealthOK })
	_ = r.send(r.soon(), panicEvent{})
	select {
	case p := <-caught:
		if fmt.Sprint(p) != "test" {
			t.Errorf("Run panicked with %v, want test", p)
		}
	case <-time.After(patience):
		t.Fatal("Run hangs in its panic")
	}
	r.checkNoProcess()
}

type panicEvent struct{}

func (panicEvent) apply(*Fleet) { panic("test") }
