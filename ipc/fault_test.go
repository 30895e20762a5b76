package ipc

import (
	"slices"
	"testing"

	"github.com/goccy/go-json"
)

func TestPage_Faults(t *testing.T) {
	ours, theirs := newPage(t)
	a := ArmedFault{Fault: Fault{ID: 4}, Slot: MaxFaults - 1}
	b := ArmedFault{Fault: Fault{ID: 9}, Slot: MaxFaults - 1}
	if got := theirs.Arm(a); got != 0 {
		t.Errorf("a new fault has struck %d times, want 0", got)
	}
	theirs.SetApplied(a.Slot, 3)
	if got := theirs.Arm(a); got != 3 {
		t.Errorf("armed again it has struck %d times, want 3", got)
	}
	if got := ours.Applied(a); got != 3 {
		t.Errorf("applied = %d in the other mapping, want 3", got)
	}
	if got := ours.Applied(b); got != 0 {
		t.Errorf("applied = %d of a fault that the engine does not know yet, want 0", got)
	}
	if got := theirs.Arm(b); got != 0 {
		t.Errorf("the next fault in the slot has struck %d times, want 0", got)
	}
	if got := ours.Applied(a); got != 0 {
		t.Errorf("applied = %d of a fault whose slot another has, want 0", got)
	}
}

func TestPage_FaultCounts(t *testing.T) {
	ours, theirs := newPage(t)
	theirs.FaultsApplied[slices.Index(FaultKinds[:], FaultStall)].Store(2)
	theirs.FaultsApplied[slices.Index(FaultKinds[:], FaultSlowHandshake)].Store(5)
	got, err := json.Marshal(ours.FaultCounts())
	if want := `{"crash":0,"error":0,"hang":0,"length":0,"repetition":0,"slow_handshake":5,"stall":2}`; err != nil || string(got) != want {
		t.Errorf("counts = %s (%v), want %s", got, err, want)
	}
	if got := ours.FaultCounts().Sum(); got != 7 {
		t.Errorf("sum = %d, want 7", got)
	}
}
