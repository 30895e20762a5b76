package enginecore

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// sameOutputs compares two decoded messages; nil and empty lists say the same.
func sameOutputs(t *testing.T, got, want *Outputs) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Outputs{}), cmpopts.EquateEmpty(), cmp.AllowUnexported(CallID{}, Version{}), cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("outputs differ (-want +got):\n%s", diff)
	}
}
