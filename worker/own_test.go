package worker

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tinylib/msgp/msgp"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/worker/engine"
)

// xargs is a map of extra arguments in msgpack, of names and values in turn.
func xargs(t *testing.T, pairs ...any) msgp.Raw {
	t.Helper()
	b := msgp.AppendMapHeader(nil, uint32(len(pairs)/2))
	for i, value := range pairs {
		var err error
		if raw, ok := value.(msgp.Raw); ok && i%2 == 1 {
			b = append(b, raw...)
		} else if b, err = msgp.AppendIntf(b, value); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// with gives a request extra arguments.
func with(r enginecore.Request, args msgp.Raw) enginecore.Request {
	r.Sampling.ExtraArgs = args
	return r
}

func TestOwnOf_Settings(t *testing.T) {
	base := engine.Params{TTFT: time.Hour, ITL: time.Hour, LoadFactor: 9, MaxSeqs: 3, FailureTypes: []engine.Finish{engine.Error}}
	ms := time.Millisecond
	for _, c := range []struct {
		name   string
		args   msgp.Raw
		change func(*engine.Params, *engine.Own)
	}{
		{"times", xargs(t, "time_to_first_token", 7, "time_to_first_token_std_dev", 1, "inter_token_latency", uint64(8), "inter_token_latency_std_dev", int8(2)),
			func(p *engine.Params, o *engine.Own) {
				p.TTFT, p.TTFTStdDev, p.ITL, p.ITLStdDev = 7*ms, ms, 8*ms, 2*ms
				o.FirstToken, o.Gaps = true, true
			}},
		{"prefill", xargs(t, "prefill_overhead", 5, "prefill_time_per_token", 6.0, "prefill_time_std_dev", 4, "time_to_first_token", 0),
			func(p *engine.Params, o *engine.Own) {
				p.TTFT, p.PrefillOverhead, p.PrefillPerToken, p.PrefillStdDev = 0, 5*ms, 6*ms, 4*ms
				o.FirstToken = true
			}},
		{"load", xargs(t, "time_factor_under_load", 1.5), func(p *engine.Params, _ *engine.Own) { p.LoadFactor = 1.5 }},
		{"failures", xargs(t, "failure_injection_rate", 1, "failure_types", []string{"length", "repetition"}),
			func(p *engine.Params, o *engine.Own) {
				p.FailureRate, p.FailureTypes, o.Failures = 1, []engine.Finish{engine.Length, engine.Repetition}, true
			}},
		{"types alone", xargs(t, "failure_types", []string{"length"}), func(p *engine.Params, _ *engine.Own) { p.FailureTypes = []engine.Finish{engine.Length} }},
		{"beside others", xargs(t, "kv_transfer_params", map[string]any{"a": []any{nil, 1}}, 5, "odd", "max_num_seqs", 1, "prefill_overhead", nil, "inter_token_latency", 2),
			func(p *engine.Params, o *engine.Own) { p.ITL, o.Gaps = 2*ms, true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ownOf(&enginecore.SamplingParams{ExtraArgs: c.args})
			if err != nil {
				t.Fatal(err)
			}
			want, wantOwn, params := base, engine.Own{}, base
			c.change(&want, &wantOwn)
			got.Adjust(&params)
			if diff := cmp.Diff(want, params); diff != "" {
				t.Errorf("parameters (-want +got):\n%s", diff)
			}
			if got.FirstToken != wantOwn.FirstToken || got.Gaps != wantOwn.Gaps || got.Failures != wantOwn.Failures || got.Fault != nil {
				t.Errorf("own = %+v, want %+v", got, wantOwn)
			}
		})
	}
}

func TestOwnOf_Fault(t *testing.T) {
	got, err := ownOf(&enginecore.SamplingParams{ExtraArgs: xargs(t, "fault_delay", 50, "fault", "stall", "fault_after_tokens", 3)})
	if err != nil {
		t.Fatal(err)
	}
	if f := got.Fault; f == nil || f.Kind != engine.FaultStall || f.AfterTokens != 3 || f.Delay != 50*time.Millisecond || got.Adjust != nil {
		t.Errorf("own = %+v with fault %+v, want a stall of 50 ms after 3 tokens", got, got.Fault)
	}
}

func TestOwnOf_Nothing(t *testing.T) {
	for name, raw := range map[string]msgp.Raw{
		"none": nil, "empty": xargs(t), "nil": msgp.Raw{0xc0}, "others'": xargs(t, "fake", "stop", "Fault", "error", "log_requests", true),
		"unset": xargs(t, "fault", nil, "inter_token_latency", nil),
	} {
		if got, err := ownOf(&enginecore.SamplingParams{ExtraArgs: raw}); got != nil || err != nil {
			t.Errorf("%s: %+v, %v, want nothing", name, got, err)
		}
	}
}

func TestOwnOf_Refused(t *testing.T) {
	for _, c := range []struct {
		args msgp.Raw
		want string
	}{
		{xargs(t, "inter_token_latency", "fast"), `vllm_xargs: inter_token_latency: "fast": want an integer`},
		{xargs(t, "inter_token_latency", -1), "inter_token_latency: -1: want an integer"},
		{xargs(t, "inter_token_latency", 1.5), "inter_token_latency: 1.5: want an integer"},
		{xargs(t, "time_to_first_token", true), "time_to_first_token: true: want an integer"},
		{xargs(t, "time_factor_under_load", 0.5), "time_factor_under_load: 0.5: want a number of at least 1"},
		{xargs(t, "failure_injection_rate", 2), "failure_injection_rate: 2: want a number from 0 to 1"},
		{xargs(t, "failure_types", []string{}), "failure_types: []: want at least one"},
		{xargs(t, "failure_types", "error"), `failure_types: "error": want a list`},
		{xargs(t, "failure_types", []string{"crash"}), "crash"},
		{xargs(t, "failure_types", strings.Repeat("x", maxOwnValue)), "want at most 4096"},
		{xargs(t, "fault", "hang"), `fault: "hang": want one of ["error" "length" "repetition" "stall" "crash"]`},
		{xargs(t, "fault", 1), "fault: 1: want one of"},
		{xargs(t, "fault", "error", "fault_after_tokens", -1), "fault_after_tokens: -1: want an integer"},
		{xargs(t, "fault", "error", "fault_after_tokens", "3"), `fault_after_tokens: "3": want an integer`},
		{xargs(t, "fault", "stall"), "fault_delay: a stall wants one"},
		{xargs(t, "fault", "stall", "fault_delay", uint64(ipc.MaxFaultTime+1)), "want an integer from 0 to 31536000000"},
		{xargs(t, "fault", "crash", "fault_delay", 5), "fault_delay: 5: only a stall has one"},
		{xargs(t, "fault_after_tokens", 5), "fault_after_tokens: given without fault"},
		{msgp.AppendString(nil, "no map"), "extra arguments"},
		{msgp.Raw{0x81}, "extra arguments"},
	} {
		if _, err := ownOf(&enginecore.SamplingParams{ExtraArgs: c.args}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: error %v, want %q", c.args, err, c.want)
		}
	}
}

// Requests with times and faults of their own run beside one that has none.
func TestOwn_BesideOthers(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.InterTokenLatency = 1 }})
	r.add(with(request("slow", 3), xargs(t, "time_to_first_token", 60, "inter_token_latency", 40)))
	r.add(with(request("fails", 9), xargs(t, "fault", "error", "fault_after_tokens", 4)))
	r.add(with(request("rate", 9), xargs(t, "failure_injection_rate", 1, "failure_types", []string{"repetition"})))
	r.add(with(request("others", 3), xargs(t, "kv_transfer_params", map[string]any{"do_remote_decode": true})))
	slow := r.outputs.awaitEnd("slow")
	slow.checkPace(t, 0.060, 0.040)
	if got := r.outputs.awaitEnd("fails"); got.finish != enginecore.FinishError || len(got.tokens) != 4 {
		t.Errorf("fails: %d tokens, finish %v, want 4, error", len(got.tokens), got.finish)
	}
	if got := r.outputs.awaitEnd("rate"); got.finish != enginecore.FinishRepetition || len(got.tokens) != 0 {
		t.Errorf("rate: %d tokens, finish %v, want none, repetition", len(got.tokens), got.finish)
	}
	if got := r.outputs.awaitEnd("others"); got.finish != enginecore.FinishLength || len(got.tokens) != 3 {
		t.Errorf("others: %d tokens, finish %v, want 3, length", len(got.tokens), got.finish)
	}
	if got, want := r.stats(), (ipc.Stats{Received: 4, Completed: 2, Failed: 2}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
	if got := r.applied(ipc.FaultError); got != 1 {
		t.Errorf("applied = %d, want 1", got)
	}
}

// A bad argument fails its request, and the client is told why.
func TestOwn_BadArgument(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.add(with(request("a", 3), xargs(t, "inter_token_latency", "fast")))
	got := r.outputs.awaitEnd("a")
	want := &enginecore.RequestError{
		Code: "validation_error", Message: `vllm_xargs: inter_token_latency: "fast": want an integer from 0 to 18446744073709551615`,
	}
	if diff := cmp.Diff(want, got.err); diff != "" || got.finish != enginecore.FinishError || !got.finished {
		t.Errorf("finish %v, error (-want +got):\n%s", got.finish, diff)
	}
	if got, want := r.stats(), (ipc.Stats{Received: 1, Failed: 1}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
}

// What a request sets for itself replaces what a latency trace says of just that.
func TestOwn_BesideTrace(t *testing.T) {
	path := writeTrace(t, `{"prompt_tokens":4,"output_tokens":3,"ttft_ms":80,"itl_ms":[20,20]}`)
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.LatencyTrace = path }})
	r.add(with(request("gaps", 3), xargs(t, "inter_token_latency", 50)))
	r.add(with(request("first", 3), xargs(t, "time_to_first_token", 120)))
	gaps := r.outputs.awaitEnd("gaps")
	gaps.checkPace(t, 0.080, 0.050)
	first := r.outputs.awaitEnd("first")
	first.checkPace(t, 0.120, 0.020)
}

func BenchmarkOwnOf_OthersArguments(b *testing.B) {
	s := &enginecore.SamplingParams{ExtraArgs: msgp.AppendNil(msgp.AppendString(msgp.AppendMapHeader(nil, 1), "kv_transfer_params"))}
	b.ReportAllocs()
	for b.Loop() {
		if own, err := ownOf(s); own != nil || err != nil {
			b.Fatal(own, err)
		}
	}
}

// FuzzOwnOf: whatever a request brings, what is accepted keeps a parameter set within its ranges.
func FuzzOwnOf(f *testing.F) {
	for _, pairs := range [][]any{
		{}, {"inter_token_latency", 5, "failure_types", []any{"error"}}, {"fault", "stall", "fault_delay", 9, "fault_after_tokens", 1},
		{"failure_injection_rate", 0.5, "kv_transfer_params", map[string]any{"a": []any{1, nil}}}, {"time_factor_under_load", 1e300}, {"fault", 1},
	} {
		b := msgp.AppendMapHeader(nil, uint32(len(pairs)/2))
		for _, value := range pairs {
			b, _ = msgp.AppendIntf(b, value) // of these kinds it can
		}
		f.Add([]byte(b))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		own, err := ownOf(&enginecore.SamplingParams{ExtraArgs: b})
		if err != nil || own == nil {
			return
		}
		p := params(config.Default().Live)
		if own.Adjust != nil {
			own.Adjust(&p)
		}
		for _, d := range []time.Duration{p.TTFT, p.TTFTStdDev, p.ITL, p.ITLStdDev, p.PrefillOverhead, p.PrefillPerToken, p.PrefillStdDev} {
			if d < 0 {
				t.Errorf("a time of %v", d)
			}
		}
		if !(p.LoadFactor >= 1) || !(p.FailureRate >= 0 && p.FailureRate <= 1) || len(p.FailureTypes) == 0 {
			t.Errorf("out of range: %+v", p)
		}
		if f := own.Fault; f != nil && (f.Kind > engine.FaultCrash || (f.Kind == engine.FaultStall) != (f.Delay > 0)) {
			t.Errorf("fault out of range: %+v", f)
		}
	})
}
