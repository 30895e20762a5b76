package worker

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tinylib/msgp/msgp"

	"vllm-vcr/config"
	"vllm-vcr/frontend/engineclient"
	"vllm-vcr/protocol/enginecore"
)

// args makes the argument list of a call.
func args(t *testing.T, values ...any) msgp.Raw {
	t.Helper()
	b := msgp.AppendArrayHeader(nil, uint32(len(values)))
	for _, v := range values {
		var err error
		if b, err = msgp.AppendIntf(b, v); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// utility calls a method and returns its value, decoded.
func (r *rig) utility(method string, values ...any) (any, error) {
	r.t.Helper()
	raw, err := r.frontend.Client(0).Utility(timeout(r.t), 0, method, args(r.t, values...))
	if err != nil || len(raw) == 0 {
		return nil, err
	}
	v, rest, err := msgp.ReadIntfBytes(raw)
	if err != nil || len(rest) > 0 {
		r.t.Fatalf("%s answered %x: %v", method, raw, err)
	}
	return v, nil
}

func TestUtility_Answers(t *testing.T) {
	type call struct {
		method string
		args   []any
		want   any
	}
	adapter := []any{"sql", 7, "/lora/sql", nil, false, false}
	common := []call{
		{"get_supported_tasks", nil, []any{"generate"}},
		{"is_sleeping", nil, false},
		{"is_scheduler_paused", nil, false},
		{"reset_mm_cache", nil, nil},
		{"reset_encoder_cache", nil, nil},
		{"reset_prefix_cache", []any{false, false}, true},
		{"profile", []any{true, nil}, nil},
		{"execute_dummy_batch", nil, nil},
		{"save_sharded_state", []any{"/tmp", nil, nil}, nil},
		{"release_kv_cache_memory", nil, nil},
		{"collective_rpc", []any{"echo", 1.5, []any{}, map[string]any{}}, []any{nil}},
		{"list_loras", nil, []any{}},
		{"add_lora", []any{adapter}, true},
		{"pin_lora", []any{7}, true},
		{"list_loras", nil, []any{int64(7)}},
		{"remove_lora", []any{7}, true},
		{"remove_lora", []any{7}, false},
		{"pin_lora", []any{7}, false},
		{"get_weight_version", nil, "default"},
		{"set_weight_version", []any{"step-9"}, nil},
		{"get_weight_version", nil, "step-9"},
		{"compute_weight_checksums", nil, []any{}},
		{"get_kv_cache_group_metadata", nil, []any{map[string]any{"group_idx": int64(0), "kind": "full_attention", "block_size": int64(16)}}},
		{"abort", []any{[]any{"nobody"}, false}, nil},
		{"sleep", []any{1, "abort"}, nil},
		{"is_sleeping", nil, true},
		{"is_scheduler_paused", nil, true},
	}
	for version, wake := range map[string][]call{
		"0.27.1": {{"wake_up", []any{nil}, nil}},
		"0.33":   {{"wake_up", []any{[]any{"weights"}}, false}, {"is_sleeping", nil, true}, {"wake_up", []any{[]any{"kv_cache"}}, true}},
	} {
		t.Run(version, func(t *testing.T) {
			r := newRig(t, rigOptions{version: version})
			calls := append(append([]call{}, common...), wake...)
			calls = append(calls, call{"is_sleeping", nil, false}, call{"is_scheduler_paused", nil, false})
			for _, c := range calls {
				got, err := r.utility(c.method, c.args...)
				if err != nil {
					t.Errorf("%s: %v", c.method, err)
				}
				if diff := cmp.Diff(c.want, got, cmp.FilterValues(isUint, cmp.Transformer("integers", widen))); diff != "" {
					t.Errorf("%s%v (-want +got):\n%s", c.method, c.args, diff)
				}
			}
		})
	}
}

// isUint says that one of two integers came unsigned: they are compared by value, whatever their kind on the wire.
func isUint(a, b any) bool {
	_, one := a.(uint64)
	_, other := b.(uint64)
	return one != other
}

func widen(v any) int64 {
	if n, ok := v.(uint64); ok {
		return int64(n)
	}
	return v.(int64)
}

func TestUtility_Refusals(t *testing.T) {
	r := newRig(t, rigOptions{})
	for _, c := range []struct {
		method string
		args   []any
		want   string
	}{
		{"make_coffee", nil, "Call to make_coffee method failed: this engine has no such method"},
		{"handle_fault_tolerance", []any{nil}, "Call to handle_fault_tolerance method failed"},
		{"reinitialize_distributed", []any{nil}, "Call to reinitialize_distributed method failed"},
		{"add_lora", []any{5}, "Call to add_lora method failed"},
		{"add_lora", nil, "Call to add_lora method failed"},
		{"remove_lora", []any{"seven"}, "Call to remove_lora method failed"},
		{"sleep", []any{9, "abort"}, "level 9, want 0 to 2"},
		{"sleep", []any{1, "dream"}, `mode "dream", want abort, wait or keep`},
		{"wake_up", []any{[]any{"ears"}}, `tag "ears"`},
		{"pause_generation", []any{"never", true}, `mode "never"`},
		{"set_weight_version", []any{5}, "Call to set_weight_version method failed"},
	} {
		_, err := r.utility(c.method, c.args...)
		var refused *engineclient.CallError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%v: %v, want a refusal with %q", c.method, c.args, err, c.want)
		}
	}
	if got, err := r.utility("is_sleeping"); err != nil || got != false {
		t.Errorf("asleep after refused calls: %v, %v", got, err)
	}
}

func TestUtility_PauseGeneration(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.TimeToFirstToken = 60_000 }})
	r.add(request("running", 1))
	r.awaitCounted(1)
	if _, err := r.utility("pause_generation", "abort", true); err != nil {
		t.Fatal(err)
	}
	if got := r.outputs.awaitEnd("running"); got.finish != enginecore.FinishAbort {
		t.Errorf("a running request: finish %v, want abort", got.finish)
	}
	r.add(request("refused", 1))
	got := r.outputs.awaitEnd("refused")
	want := &enginecore.RequestError{Code: "engine_paused", Message: "generation is paused", Retryable: true}
	if diff := cmp.Diff(want, got.err); diff != "" || got.finish != enginecore.FinishError {
		t.Errorf("a new request: finish %v, error (-want +got):\n%s", got.finish, diff)
	}
	if _, err := r.utility("resume_scheduler"); err != nil {
		t.Fatal(err)
	}
	r.patch(1, config.Patch{{Key: "time_to_first_token", Raw: "0"}})
	r.add(request("again", 1))
	if got := r.outputs.awaitEnd("again"); got.finish != enginecore.FinishLength {
		t.Errorf("after resuming: finish %v, want length", got.finish)
	}
}

// A pause that waits is answered when the last running request has ended.
func TestUtility_PauseWaits(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.TimeToFirstToken = 60_000 }})
	r.add(request("running", 1))
	r.awaitCounted(1)
	answered := make(chan error, 1)
	go func() {
		_, err := r.frontend.Client(0).Utility(context.Background(), 0, "pause_scheduler", args(t, "wait", true))
		answered <- err
	}()
	for paused := any(false); paused != true; {
		var err error
		if paused, err = r.utility("is_scheduler_paused"); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-answered:
		t.Fatalf("answered while a request runs: %v", err)
	default:
	}
	if err := r.frontend.Client(0).Abort(0, "running"); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}
