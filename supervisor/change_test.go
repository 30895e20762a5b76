package supervisor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
)

// latencies asks every engine that lives for its inter-token latency; −1 stands for the others.
func latencies(r *rig) []int {
	r.t.Helper()
	list := make([]int, r.Len())
	for i := range list {
		live, err := r.EngineConfig(r.soon(), i)
		if list[i] = int(live.InterTokenLatency); err != nil {
			list[i] = -1
		}
	}
	return list
}

func generations(r *rig) []uint64 {
	r.t.Helper()
	list := make([]uint64, r.Len())
	for i := range list {
		list[i] = r.look(i).Generation
	}
	return list
}

func wantAll[T any](t *testing.T, what string, got []T, want ...T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s by engine (-want +got):\n%s", what, diff)
	}
}

func TestChange_AllEngines(t *testing.T) {
	t.Parallel()
	r := launch(t, 3, setup{roles: []string{good}})
	live, err := r.Patch(r.soon(), itl("7"))
	if err != nil || live.InterTokenLatency != 7 {
		t.Errorf("Patch = %d, %v, want 7", live.InterTokenLatency, err)
	}
	wantAll(t, "latency", latencies(r), 7, 7, 7)
	wantAll(t, "generation", generations(r), 1, 1, 1)
	if live, err = r.PatchEngine(r.soon(), 1, itl("9")); err != nil || live.InterTokenLatency != 9 {
		t.Errorf("PatchEngine = %d, %v, want 9", live.InterTokenLatency, err)
	}
	wantAll(t, "latency", latencies(r), 7, 9, 7)
	wantAll(t, "generation", generations(r), 1, 2, 1)
	if live, err = r.ResetConfig(r.soon()); err != nil || live.InterTokenLatency != 0 {
		t.Errorf("ResetConfig = %d, %v, want 0", live.InterTokenLatency, err)
	}
	wantAll(t, "latency", latencies(r), 0, 0, 0)
	wantAll(t, "generation", generations(r), 3, 3, 3)
}

// One engine that says no, dies or says nothing in the first round, and nothing has changed anywhere.
func TestChange_FirstRoundFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		role  string
		check func(t *testing.T, err error)
		after []int
	}{
		{refuses, func(t *testing.T, err error) {
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Index != 1 || refused.Error() != "engine 1: a puppet has principles" {
				t.Errorf("Patch: error %v, want engine 1's refusal", err)
			}
		}, []int{0, 0, 0}},
		{diesAsked, func(t *testing.T, err error) { wantGone(t, "Patch", err, 1, "signal 9") }, []int{0, -1, 0}},
		{slowToPrepare, func(t *testing.T, err error) { wantSilent(t, "Patch", err, 1) }, []int{0, 0, 0}},
	} {
		t.Run(c.role, func(t *testing.T) {
			t.Parallel()
			r := launch(t, 3, setup{roles: []string{good, c.role, good}})
			_, err := r.Patch(r.within(slowAnswer/2), itl("7"))
			c.check(t, err)
			wantAll(t, "latency", latencies(r), c.after...)
			wantAll(t, "generation", generations(r), 0, 0, 0)
			for _, i := range []int{0, 2} {
				r.await("the change is forgotten", func() bool { return r.members[i].page.LogDropped.Load() == 0 })
			}
			if err := r.ResetStats(r.within(slowAnswer / 2)); err == nil {
				t.Error("ResetStats: no error where an engine cannot")
			}
		})
	}
}

// An engine that agreed and was lost before the second round is a death in the first: the others keep what they have. So
// it is where another process has already taken its place, which has agreed to nothing.
func TestChange_LostBetweenRounds(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*config.Config){"dead": nil, "replaced": onFailure} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := launch(t, 3, setup{roles: []string{diesAgreed, good, slowToPrepare, good}, config: edit})
			arrive(t, r, 1, 3)
			_, err := r.Patch(r.soon(), itl("7"))
			want := "signal 9"
			if name == "replaced" {
				want = "another one has taken its place"
			}
			wantGone(t, "Patch", err, 0, want)
			after := map[string][]int{"dead": {-1, 0, 0}, "replaced": {0, 0, 0}}[name]
			wantAll(t, "latency", latencies(r), after...)
			wantAll(t, "generation", generations(r), 0, 0, 0)
			if name == "dead" {
				return
			}
			if _, err := r.Patch(r.soon(), itl("8")); err != nil {
				t.Errorf("Patch after the restart: %v", err)
			}
			wantAll(t, "latency", latencies(r), 8, 8, 8)
		})
	}
}

// A death in the second round is an error that says the change is in force, and where; the survivors are equal, and the
// next process of the dead engine has it.
func TestChange_DiesInSecondRound(t *testing.T) {
	t.Parallel()
	r := launch(t, 3, setup{roles: []string{good, diesToldTo, good, good}, config: onFailure})
	_, err := r.Patch(r.soon(), itl("7"))
	wantGone(t, "Patch", err, 1, "the change is in force; confirmed by engine 0, engine 2")
	r.awaitState(1, StateReady)
	wantAll(t, "latency", latencies(r), 7, 7, 7)
	wantAll(t, "generation", generations(r), 1, 1, 1)
	if _, err := r.Patch(r.soon(), itl("8")); err != nil {
		t.Errorf("Patch after the restart: %v", err)
	}
}

func TestChange_SilentInSecondRound(t *testing.T) {
	t.Parallel()
	r := launch(t, 2, setup{roles: []string{good, slowToConfirm}})
	_, err := r.Patch(r.within(slowAnswer/2), itl("7"))
	wantSilent(t, "Patch", err, 1)
	if want := "the change is in force; confirmed by engine 0"; !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("Patch: error %v, want it to say %s", err, want)
	}
	wantAll(t, "latency", latencies(r), 7, 7)
}

// A process that starts later has what the fleet has, and a reset gives what the fleet was launched with.
func TestChange_RestartedEngine(t *testing.T) {
	t.Parallel()
	launched := func(cfg *config.Config) { onFailure(cfg); cfg.InterTokenLatency, cfg.MaxNumSeqs = 5, 9 }
	r := launch(t, 2, setup{roles: []string{good}, config: launched})
	if _, err := r.Patch(r.soon(), config.Patch{{Key: "inter_token_latency", Raw: "6"}, {Key: "failure_types", Raw: `["length","error"]`}}); err != nil {
		t.Fatal(err)
	}
	r.kill(1, syscall.SIGKILL)
	r.await("engine 1 is back", func() bool { s := r.look(1); return s.State == StateReady && s.Restarts == 1 })
	first, err := r.EngineConfig(r.soon(), 0)
	if err != nil {
		t.Fatal(err)
	}
	second, err := r.EngineConfig(r.soon(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("configuration (-engine 0 +engine 1):\n%s", diff)
	}
	got, err := r.ResetConfig(r.soon())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.cfg.Live, got); diff != "" {
		t.Errorf("after a reset (-launched +got):\n%s", diff)
	}
}

// Any number of callers: each answer is one whole state, and in the end all engines have the last.
func TestChange_ManyAtOnce(t *testing.T) {
	t.Parallel()
	r := launch(t, 3, setup{roles: []string{good}})
	var callers sync.WaitGroup
	for c := range 32 {
		callers.Go(func() {
			for i := range 20 {
				n := strconv.Itoa(c*100 + i + 1)
				live, err := r.Patch(r.soon(), config.Patch{{Key: "inter_token_latency", Raw: n}, {Key: "time_to_first_token", Raw: n}})
				if err != nil || live.InterTokenLatency != live.TimeToFirstToken || strconv.FormatUint(live.TimeToFirstToken, 10) != n {
					t.Errorf("Patch = %d and %d, %v, want %s and %s", live.TimeToFirstToken, live.InterTokenLatency, err, n, n)
				}
			}
		})
	}
	callers.Wait()
	list := latencies(r)
	wantAll(t, "latency", list, list[0], list[0], list[0])
	wantAll(t, "generation", generations(r), 640, 640, 640)
}

// A change waits for the one before it, within its own time.
func TestChange_WaitsItsTurn(t *testing.T) {
	t.Parallel()
	r := launch(t, 1, setup{roles: []string{slowToPrepare}})
	first := make(chan error, 1)
	go func() { _, err := r.Patch(r.soon(), itl("1")); first <- err }()
	r.await("the first change is under way", func() bool { return len(r.changes) == 1 })
	if _, err := r.Patch(r.within(slowAnswer/4), itl("2")); err == nil || !strings.Contains(err.Error(), "another change is under way") {
		t.Errorf("second Patch: error %v, want that another change is under way", err)
	}
	if err := <-first; err != nil {
		t.Errorf("first Patch: %v", err)
	}
	wantAll(t, "latency", latencies(r), 1)
}

func TestChange_ResetStats(t *testing.T) {
	t.Parallel()
	r := launch(t, 2, setup{roles: []string{good}})
	arrive(t, r, 0, 10)
	arrive(t, r, 1, 3)
	if err := r.ResetStats(r.soon()); err != nil {
		t.Fatal(err)
	}
	stats, err := r.Stats(r.soon())
	if diff := cmp.Diff(ipc.Stats{Running: 13}, stats); diff != "" || err != nil {
		t.Errorf("after a reset: %v (-want +got):\n%s", err, diff)
	}
	if _, err := r.call(r.soon(), 0, ipc.Call{Op: opFinish, Timeout: 10}); err != nil {
		t.Fatal(err)
	}
	stats, err = r.Stats(r.soon())
	if diff := cmp.Diff(ipc.Stats{Completed: 10, Running: 3}, stats); diff != "" || err != nil {
		t.Errorf("after what ran over the reset: %v (-want +got):\n%s", err, diff)
	}
}

// A reset that was in force is made good where a process died before it came to it.
func TestChange_ResetStats_DiesToldTo(t *testing.T) {
	t.Parallel()
	r := launch(t, 2, setup{roles: []string{good, diesToldTo}})
	arrive(t, r, 0, 2)
	arrive(t, r, 1, 4)
	wantGone(t, "ResetStats", r.ResetStats(r.soon()), 1, "the change is in force; confirmed by engine 0")
	s := r.look(1)
	if diff := cmp.Diff(ipc.Stats{Failed: 4}, s.Stats); diff != "" {
		t.Errorf("counters of the dead engine (-want +got):\n%s", diff)
	}
	if s.Lost != 4 {
		t.Errorf("lost = %d, want 4", s.Lost)
	}
}

// While requests end, resets neither lose one nor go below 0.
func TestChange_ResetStats_WhileBusy(t *testing.T) {
	t.Parallel()
	const requests = 300
	r := launch(t, 1, setup{roles: []string{good}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range requests {
			for _, op := range []string{opArrive, opFinish} {
				if _, err := r.call(r.soon(), 0, ipc.Call{Op: op, Timeout: 1}); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	for busy := true; busy; {
		select {
		case <-done:
			busy = false
		default:
		}
		if err := r.ResetStats(r.soon()); err != nil {
			t.Fatal(err)
		}
		if s := r.look(0).Stats; s.Received > requests || s.Completed > requests {
			t.Fatalf("counters below 0: %+v", s)
		}
	}
	page := r.members[0].page
	if got, ended := page.Received.Load(), page.Completed.Load(); got != requests || ended != requests {
		t.Errorf("%d received and %d completed in all, want %d", got, ended, requests)
	}
}
