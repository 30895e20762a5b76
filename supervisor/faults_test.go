package supervisor

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vllm-vcr/ipc"
)

// on is a fault of one engine.
func on(index int, f ipc.Fault) ipc.Fault { f.Engine = &index; return f }

// arm arms a fault that must be possible, and returns its id.
func (r *rig) arm(f ipc.Fault) uint64 {
	r.t.Helper()
	status, err := r.ArmFault(r.soon(), f)
	if err != nil {
		r.t.Fatalf("ArmFault: %v", err)
	}
	return status.ID
}

// active is the faults there are, with how often each has struck its engines.
func (r *rig) active() map[uint64][]uint64 {
	r.t.Helper()
	all, err := r.Faults(r.soon())
	if err != nil {
		r.t.Fatalf("Faults: %v", err)
	}
	list := map[uint64][]uint64{}
	for _, s := range all.Faults {
		for _, e := range s.Engines {
			list[s.ID] = append(list[s.ID], e.Applied)
		}
	}
	return list
}

// armedIn is the sum of the ids of the faults that an engine's process has.
func (r *rig) armedIn(index int) uint64 { return r.members[index].page.HeldBytes.Load() }

// strike has the fault in a slot strike an engine until it has n times.
func (r *rig) strike(index, slot int, n uint64) {
	r.t.Helper()
	if _, err := r.call(r.soon(), index, ipc.Call{Op: opStrike, Change: uint64(slot), Timeout: n}); err != nil {
		r.t.Fatal(err)
	}
}

func wantActive(t *testing.T, r *rig, want map[uint64][]uint64) {
	t.Helper()
	if diff := cmp.Diff(want, r.active(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("active faults and strikes (-want +got):\n%s", diff)
	}
}

func TestFaults_ArmAndClear(t *testing.T) {
	t.Parallel()
	r := launch(t, 3, setup{roles: []string{good}})
	after := uint64(5)
	status, err := r.ArmFault(r.soon(), ipc.Fault{Kind: ipc.FaultError, Count: 2, AfterTokens: &after})
	two := uint64(2)
	want := FaultStatus{
		Fault:   ipc.Fault{ID: 1, Kind: ipc.FaultError, Count: 2, AfterTokens: &after},
		Engines: []FaultOnEngine{{Engine: 0, Active: true, Remaining: &two}, {Engine: 1, Active: true, Remaining: &two}, {Engine: 2, Active: true, Remaining: &two}},
	}
	if diff := cmp.Diff(want, status); diff != "" || err != nil {
		t.Errorf("ArmFault: %v (-want +got):\n%s", err, diff)
	}
	one := r.arm(on(1, ipc.Fault{Kind: ipc.FaultStall, Delay: 5}))
	wantActive(t, r, map[uint64][]uint64{1: {0, 0, 0}, one: {0}})
	wantAll(t, "ids", []uint64{r.armedIn(0), r.armedIn(1), r.armedIn(2)}, 1, 3, 1)
	wantAll(t, "faults_active", []uint64{r.Engines(r.soon())[0].FaultsActive, r.Engines(r.soon())[1].FaultsActive}, 1, 2)

	if err := r.ClearFault(r.soon(), 99); !errors.Is(err, ErrNoFault) || !strings.Contains(err.Error(), "fault 99") {
		t.Errorf("ClearFault of one that there is not: %v, want %v", err, ErrNoFault)
	}
	if err := r.ClearFault(r.soon(), one); err != nil {
		t.Errorf("ClearFault: %v", err)
	}
	wantActive(t, r, map[uint64][]uint64{1: {0, 0, 0}})
	if err := r.ClearFaults(r.soon()); err != nil {
		t.Errorf("ClearFaults: %v", err)
	}
	wantActive(t, r, nil)
	wantAll(t, "ids", []uint64{r.armedIn(0), r.armedIn(1), r.armedIn(2)}, 0, 0, 0)
	if err := r.ClearFaults(r.soon()); err != nil {
		t.Errorf("ClearFaults of none: %v", err)
	}
}

// A fault is active until it has struck every engine as often as it counts, or its time is over.
func TestFaults_Over(t *testing.T) {
	t.Parallel()
	r := launch(t, 2, setup{roles: []string{good}})
	id := r.arm(ipc.Fault{Kind: ipc.FaultError, Count: 2})
	r.strike(0, 0, 2)
	wantActive(t, r, map[uint64][]uint64{id: {2, 0}})
	r.strike(1, 0, 1)
	wantActive(t, r, map[uint64][]uint64{id: {2, 1}})
	wantAll(t, "faults_active", []uint64{r.Engines(r.soon())[0].FaultsActive, r.Engines(r.soon())[1].FaultsActive}, 0, 1)
	r.strike(1, 0, 2)
	wantActive(t, r, nil)
	if err := r.ClearFault(r.soon(), id); !errors.Is(err, ErrNoFault) {
		t.Errorf("ClearFault of one that is over: %v, want %v", err, ErrNoFault)
	}
	timed := r.arm(ipc.Fault{Kind: ipc.FaultError, Duration: 30})
	r.await("the timed fault is over", func() bool { return r.active()[timed] == nil })
}

// One engine that cannot, and none has the fault.
func TestFaults_AllOrNone(t *testing.T) {
	t.Parallel()
	for _, role := range []string{refuses, diesAsked, slowToPrepare} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			r := launch(t, 3, setup{roles: []string{good, role, good}})
			if _, err := r.ArmFault(r.within(slowAnswer/2), ipc.Fault{Kind: ipc.FaultError, Count: 1}); err == nil {
				t.Fatal("ArmFault: no error")
			}
			wantActive(t, r, nil)
			wantAll(t, "ids", []uint64{r.armedIn(0), r.armedIn(1), r.armedIn(2)}, 0, 0, 0)
			if _, err := r.ArmFault(r.soon(), on(2, ipc.Fault{Kind: ipc.FaultError, Count: 1})); err != nil {
				t.Errorf("ArmFault for an engine that can: %v", err)
			}
		})
	}
}

// A new process has what may strike yet: not what has struck, not what is over, no hang, and what is left of the time.
func TestFaults_RestartedEngine(t *testing.T) {
	t.Parallel()
	r := launch(t, 2, setup{roles: []string{good}, config: onFailure})
	struck := r.arm(ipc.Fault{Kind: ipc.FaultCrash, Count: 1})
	partly := r.arm(ipc.Fault{Kind: ipc.FaultError, Count: 3})
	hang := r.arm(on(1, ipc.Fault{Kind: ipc.FaultHang}))
	timed := r.arm(ipc.Fault{Kind: ipc.FaultSlowHandshake, Duration: 3_600_000, Delay: 1})
	brief := r.arm(ipc.Fault{Kind: ipc.FaultLength, Duration: 1})
	r.await("a fault is over", func() bool { return r.active()[brief] == nil })
	r.strike(1, 0, 1)
	r.strike(1, 1, 2)
	r.kill(1, syscall.SIGKILL)
	r.await("engine 1 is back", func() bool { s := r.look(1); return s.State == StateReady && s.Restarts == 1 })
	if got := r.armedIn(1); got != partly+timed {
		t.Errorf("the new process has faults whose ids sum up to %d, want %d", got, partly+timed)
	}
	if err := r.read(r.soon(), func() {
		for _, f := range r.faultsFor(r.members[1]) {
			if f.ID == timed && (f.Duration > 3_600_000 || f.Duration < 3_500_000) {
				t.Errorf("time left = %d ms, want a little less than an hour", f.Duration)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	wantActive(t, r, map[uint64][]uint64{struck: {0, 1}, partly: {0, 2}, timed: {0, 0}})
	if err := r.ClearFault(r.soon(), hang); !errors.Is(err, ErrNoFault) {
		t.Errorf("ClearFault of a hang whose process is gone: %v, want %v", err, ErrNoFault)
	}
}

// A crash at once is the end of the processes, and no error; what comes after them does not crash.
func TestFaults_CrashAtOnce(t *testing.T) {
	t.Parallel()
	r := launch(t, 2, setup{roles: []string{good}, config: onFailure})
	status, err := r.ArmFault(r.soon(), ipc.Fault{Kind: ipc.FaultCrash})
	want := []FaultOnEngine{{Engine: 0, Applied: 1}, {Engine: 1, Applied: 1}}
	if diff := cmp.Diff(want, status.Engines); diff != "" || err != nil {
		t.Errorf("ArmFault: %v (-want +got):\n%s", err, diff)
	}
	for i := range 2 {
		r.await("the engine is back", func() bool { s := r.look(i); return s.State == StateReady && s.Restarts == 1 })
	}
	wantActive(t, r, nil)
}

// What a dead engine had is over where nothing comes after it, and the others' faults can be cleared.
func TestFaults_DeadEngine(t *testing.T) {
	t.Parallel()
	r := launch(t, 2, setup{roles: []string{good}})
	both := r.arm(ipc.Fault{Kind: ipc.FaultError, Count: 1})
	r.arm(on(1, ipc.Fault{Kind: ipc.FaultLength, Count: 1}))
	r.kill(1, syscall.SIGKILL)
	r.awaitState(1, StateDead)
	wantActive(t, r, map[uint64][]uint64{both: {0, 0}})
	if _, err := r.ArmFault(r.soon(), ipc.Fault{Kind: ipc.FaultError, Count: 1}); err == nil {
		t.Error("ArmFault with a dead engine: no error")
	}
	if err := r.ClearFault(r.soon(), both); err != nil {
		t.Errorf("ClearFault with a dead engine: %v", err)
	}
	if got := r.armedIn(0); got != 0 {
		t.Errorf("ids of engine 0 = %d, want none", got)
	}
}

// A change of those that live is no error where none does, each waiting to be started again.
func TestFaults_NoneLives(t *testing.T) {
	t.Parallel()
	r := launch(t, 1, setup{roles: []string{good}, config: onFailure, timing: func(t *timing) { t.firstBackoff = time.Hour }})
	r.arm(ipc.Fault{Kind: ipc.FaultError, Count: 1})
	r.kill(0, syscall.SIGKILL)
	r.awaitState(0, StateDead)
	if err := r.ClearFaults(r.soon()); err != nil {
		t.Errorf("ClearFaults: %v", err)
	}
}

// A process that was started while the others were asked hears of it too.
func TestFaults_ClearedWhileOneStarts(t *testing.T) {
	t.Parallel()
	r := launch(t, 2, setup{roles: []string{slowToPrepare, good}, config: onFailure, timing: func(t *timing) { t.firstBackoff = slowAnswer / 2 }})
	id := r.arm(ipc.Fault{Kind: ipc.FaultError, Count: 1})
	r.kill(1, syscall.SIGKILL)
	r.awaitState(1, StateDead)
	if err := r.ClearFault(r.soon(), id); err != nil {
		t.Errorf("ClearFault: %v", err)
	}
	r.await("engine 1 is back", func() bool { s := r.look(1); return s.State == StateReady && s.Restarts == 1 })
	r.await("it has no fault", func() bool { return r.armedIn(1) == 0 })
}

func TestFaults_TooMany(t *testing.T) {
	t.Parallel()
	r := launch(t, 1, setup{roles: []string{good}})
	for range ipc.MaxFaults {
		r.arm(ipc.Fault{Kind: ipc.FaultError, Count: 1})
	}
	if _, err := r.ArmFault(r.soon(), ipc.Fault{Kind: ipc.FaultError, Count: 1}); !errors.Is(err, ErrTooManyFaults) {
		t.Errorf("ArmFault: %v, want %v", err, ErrTooManyFaults)
	}
	r.strike(0, 9, 1)
	r.arm(ipc.Fault{Kind: ipc.FaultError, Count: 1})
}

func TestMillisecondsLeft(t *testing.T) {
	now := time.Now()
	for left, want := range map[time.Duration]uint64{-time.Second: 0, 0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2} {
		if got := millisecondsLeft(now.Add(left), now); got != want {
			t.Errorf("%v: %d ms, want %d", left, got, want)
		}
	}
}
