package enginecore

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is appended reads back as it was, on the layouts before and after 0.33.
func TestAppendUtilityArgs_RoundTrip(t *testing.T) {
	level, mode, err := DecodeSleepArgs(AppendSleepArgs(nil, 2, "wait"))
	if level != 2 || mode != "wait" || err != nil {
		t.Errorf("sleep = %d, %q, %v; want 2, wait", level, mode, err)
	}
	for _, want := range [][]string{nil, {"weights", "kv_cache"}} {
		if got, err := DecodeWakeUpArgs(AppendWakeUpArgs(nil, want)); err != nil || !cmp.Equal(got, want) {
			t.Errorf("wake_up = %q, %v; want %q", got, err, want)
		}
	}
	running, connector, err := DecodeResetPrefixCacheArgs(AppendResetPrefixCacheArgs(nil, true, false))
	if !running || connector || err != nil {
		t.Errorf("reset_prefix_cache = %v, %v, %v; want true, false", running, connector, err)
	}
	if id, err := DecodeLoRAIDArgs(AppendLoRAIDArgs(nil, 7)); id != 7 || err != nil {
		t.Errorf("remove_lora = %d, %v; want 7", id, err)
	}
	want := &LoRARequest{Name: "sql", ID: 3, Path: "/a/b", BaseModel: "base", LoadInplace: true}
	for _, v := range []Version{{}, {behind: newestMinor - 27}} {
		got, err := DecodeAddLoRAArgs(AppendAddLoRAArgs(nil, v, want))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("add_lora on %v: %v, (-want +got):\n%s", v, err, diff)
		}
	}
}
