package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPatch_Apply(t *testing.T) {
	before := Default().Live
	got, err := Patch{
		{"time_to_first_token", "1000"},
		{"time_factor_under_load", "1.5"},
		{"failure_types", `["length","length","error"]`},
		{"log_requests", "true"},
		{"time_to_first_token", "2000"}, // the later one counts
	}.Apply(before)
	if err != nil {
		t.Fatal(err)
	}
	want := Default().Live
	want.TimeToFirstToken, want.TimeFactorUnderLoad, want.LogRequests = 2000, 1.5, true
	want.FailureTypes = []string{FailLength, FailLength, FailError}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Default().Live, before); diff != "" {
		t.Errorf("the argument was changed (-want +got):\n%s", diff)
	}
}

func TestPatch_Apply_Nil(t *testing.T) {
	got, err := Patch(nil).Apply(Default().Live)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default().Live, got); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
}

// TestPatch_Apply_Refused has every fault told and nothing applied, not even what was right.
func TestPatch_Apply_Refused(t *testing.T) {
	tests := []struct {
		name  string
		patch Patch
		want  []string
	}{
		{"unknown key", Patch{{"seed", "1"}}, []string{"seed: not a setting that can be changed"}},
		{"all faults", Patch{{"inter_token_latency", "5"}, {"max_num_seqs", "0"}, {"log_requests", "1"}, {"failure_types", "[]"}},
			[]string{"max_num_seqs: 0: want an integer from 1", "log_requests: 1: want true or false", "failure_types: []: want at least one of"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.patch.Apply(Default().Live)
			wantLines(t, err, tt.want)
			if diff := cmp.Diff(Default().Live, got); diff != "" {
				t.Errorf("something was applied (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSetJSON_Shapes tries JSON of the wrong kind on every kind of live option.
func TestSetJSON_Shapes(t *testing.T) {
	tests := []struct {
		key       string
		good, bad []string
	}{
		{"max_num_seqs", []string{"0", "1", uintMax}, []string{uintOver, "-1", "5.0", "1e2", `"5"`, "true", "[]", "{}"}},
		{"failure_injection_rate", []string{"0", "1", "0.5", "-2", "1e2"}, []string{`"0.5"`, "true", "[]", "{}"}},
		{"log_requests", []string{"true", "false"}, []string{"0", "1", `"true"`, "[]", "{}"}},
		{"failure_types", []string{"[]", `["error"]`, `["length", "length"]`}, []string{`"error"`, "{}", "1", "[1]", "[null]", `["Error"]`, `[["error"]]`}},
	}
	for _, tt := range tests {
		o, ok := LiveOption(tt.key)
		if !ok {
			t.Fatalf("%s is no live option", tt.key)
		}
		for _, raw := range tt.good {
			if err := o.Value(&Config{}).SetJSON([]byte(raw)); err != nil {
				t.Errorf("%s: %s: %v", tt.key, raw, err)
			}
		}
		for _, raw := range tt.bad {
			c := Default()
			if err := o.Value(&c).SetJSON([]byte(raw)); err == nil {
				t.Errorf("%s: %s is accepted", tt.key, raw)
			}
			if diff := cmp.Diff(Default(), c); diff != "" {
				t.Errorf("%s: %s changed something (-want +got):\n%s", tt.key, raw, diff)
			}
		}
	}
}

func TestPatch_Timing(t *testing.T) {
	tests := []struct {
		patch Patch
		want  string
	}{
		{nil, ""},
		{Patch{{"max_num_batched_tokens", "1"}, {"max_model_len", "1"}, {"failure_injection_rate", "1"}, {"log_requests", "true"}}, ""},
		{Patch{{"log_requests", "true"}, {"max_num_seqs", "1"}, {"inter_token_latency", "1"}}, "max_num_seqs"},
		{Patch{{"time_factor_under_load", "1"}}, "time_factor_under_load"},
		{Patch{{"prefill_time_std_dev", "1"}}, "prefill_time_std_dev"},
		{Patch{{"seed", "1"}}, ""},
	}
	for _, tt := range tests {
		if got := tt.patch.Timing(); got != tt.want {
			t.Errorf("%v: Timing() = %q, want %q", tt.patch, got, tt.want)
		}
	}
}

func TestDifference(t *testing.T) {
	want := Default().Live
	slow, failing := want.Clone(), want.Clone()
	slow.InterTokenLatency = 2000
	failing.FailureTypes = []string{FailLength}
	if p := Difference(want, want, want.Clone()); len(p) != 0 {
		t.Errorf("difference of equals = %v, want none", p)
	}
	p := Difference(want, want, slow, failing)
	if diff := cmp.Diff(Patch{{"inter_token_latency", "0"}, {"failure_types", `["error"]`}}, p); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
	for _, l := range []Live{want, slow, failing} {
		got, err := p.Apply(l)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("not made equal (-want +got):\n%s", diff)
		}
	}
}
