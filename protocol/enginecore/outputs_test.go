package enginecore

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/tinylib/msgp/msgp"
)

// sameOutputs compares two decoded messages; nil and empty lists say the same.
func sameOutputs(t *testing.T, got, want *Outputs) {
	t.Helper()
	options := []cmp.Option{
		cmpopts.IgnoreUnexported(Outputs{}), cmpopts.EquateEmpty(), cmpopts.EquateNaNs(), cmp.AllowUnexported(CallID{}, Version{}),
	}
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("outputs differ (-want +got):\n%s", diff)
	}
}

// What vLLM's own structs encode, against values written down here.
func TestDecodeOutputs_VLLMStructs(t *testing.T) {
	const id = "cmpl-0123456789abcdef-0-deadbeef"
	one := func(o Output) []RequestOutput { return []RequestOutput{{[]byte(id), o}} }
	noEvictions := msgp.Raw{0x90}
	for name, want := range map[string]Outputs{
		"0.27.1-struct-outputs_finish_stop_token": {Requests: one(Output{
			Tokens: []uint32{2045}, Finish: FinishStop, StopReason: StopReason{Token: Some[int64](2045)},
		})},
		"0.27.1-struct-outputs_finish_abort":      {Requests: one(Output{Finish: FinishAbort})},
		"0.27.1-struct-outputs_finish_repetition": {Requests: one(Output{Tokens: []uint32{42}, Finish: FinishRepetition})},
		"0.27.1-struct-outputs_first_token_prefill_stats_events": {
			Requests: one(Output{
				Tokens: []uint32{42}, Events: []Event{{EventQueued, 100.25}, {EventScheduled, 100.5}},
				Prefill: &PrefillStats{Prompt: 8, Computed: 8, CacheCreation: 8},
			}),
			Stats: &SchedulerStats{Running: 1, KVCacheUsage: 0.125, EvictionEvents: noEvictions, PrefixCache: PrefixCacheStats{Requests: 1, Queries: 8}},
		},
		"0.27.1-struct-outputs_scheduler_stats_full": {Stats: &SchedulerStats{
			Running: 3, Waiting: 2, SkippedWaiting: 1, StepCounter: 9, CurrentWave: 1, KVCacheUsage: 0.5, EvictionEvents: noEvictions,
			PrefixCache: PrefixCacheStats{Requests: 2, Queries: 100, Hits: 64}, Connector: &PrefixCacheStats{Requests: 1, Queries: 10, Hits: 4},
			SpecDecoding: &SpecDecodingStats{SpecTokens: 2, Drafts: 1, DraftTokens: 2, AcceptedTokens: 1, AcceptedByPosition: []uint64{1, 0}},
			WaitingLoRAs: []LoRACount{{"lora1", 1}}, RunningLoRAs: []LoRACount{{"lora2", 2}},
		}},
		"0.33.0-struct-outputs_error_engine_paused": {Finished: []string{id}, Requests: one(Output{
			Finish: FinishError, Error: &RequestError{"engine_paused", "Generation is paused. Please retry after it resumes.", true},
		})},
		"0.33.0-struct-outputs_mm_cache_miss": {Requests: one(Output{Finish: FinishError, MMCacheMisses: []string{"abc"}})},
		"0.33.0-struct-outputs_spec_decode_metrics": {Requests: one(Output{
			Tokens: []uint32{42}, Finish: FinishLength, SpecDecode: &SpecDecodingMetrics{SpecTokens: 2, Histogram: []uint64{1, 2, 0}, DraftTokens: 6},
		})},
		"0.33.0-struct-outputs_wave_complete":   {WaveComplete: Some[uint64](3)},
		"0.33.0-struct-outputs_start_wave":      {StartWave: Some[uint64](4)},
		"0.33.0-struct-outputs_weight_version":  {WeightVersion: "v7", Requests: one(Output{Tokens: []uint32{42}})},
		"0.33.0-struct-outputs_utility_failure": {Utility: &UtilityResult{CallID: NewCallID(77), Failure: Some("Call to add_lora method failed: boom")}},
		"0.33.0-struct-outputs_utility_ok_true": {Utility: &UtilityResult{CallID: NewCallID(77), Value: msgp.Raw{0xc3}}},
		"0.33.0-struct-outputs_prompt_logprobs": {Requests: one(Output{Tokens: []uint32{42}, PromptLogprobs: &Logprobs{
			TokenIDs: Tensor{DType: "int32", Shape: []int{2, 2}, Data: []byte{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0}},
			Logprobs: Tensor{DType: "float32", Shape: []int{2, 2}, Data: []byte{0, 0, 0x80, 0xbf, 0, 0, 0, 0xc0, 0, 0, 0x40, 0xc0, 0, 0, 0x80, 0xc0}},
			Ranks:    Tensor{DType: "int32", Shape: []int{2}, Data: []byte{1, 0, 0, 0, 2, 0, 0, 0}},
		}})},
		"0.33.0-struct-outputs_logprobs_aux_frames": {Requests: one(Output{Tokens: []uint32{1, 2, 3}, Logprobs: &Logprobs{
			TokenIDs: Tensor{DType: "<i4", Shape: []int{3, 101}, Frame: 1}, Logprobs: Tensor{DType: "<f4", Shape: []int{3, 101}, Frame: 2},
			Ranks: Tensor{DType: "<i4", Shape: []int{3}, Data: []byte{1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}},
		}})},
	} {
		t.Run(name, func(t *testing.T) {
			var got Outputs
			if err := DecodeOutputs(goldenNamed(t, name), &got); err != nil {
				t.Fatal(err)
			}
			want.Timestamp = 12345.5
			sameOutputs(t, &got, &want)
		})
	}
}

func TestDecodeOutputs_Tolerance(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty":            {0x90},
		"nil everywhere":   {0x99, 0xc0, 0xc0, 0xc0, 0xc0, 0xc0, 0xc0, 0xc0, 0xc0, 0xc0},
		"whole timestamp":  {0x94, 0, 0x90, 0xc0, 0},
		"elements to come": {0x9a, 0, 0x90, 0xc0, 0, 0xc0, 0xc0, 0xc0, 0xc0, 0xc0, 0x81, 1, 2},
	} {
		o := Outputs{EngineIndex: 9, WeightVersion: "old", Finished: []string{"old"}}
		if err := DecodeOutputs(b, &o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		sameOutputs(t, &o, &Outputs{})
	}
	slots := []byte{0x92, 0, 0x91, 0xdc, 0, 21, 0xa1, 'a', 0x91, 1}
	for i := 2; i < 21; i++ {
		slots = append(slots, 0xc0)
	}
	var o Outputs
	if err := DecodeOutputs(slots, &o); err != nil {
		t.Fatal(err)
	}
	sameOutputs(t, &o, &Outputs{Requests: []RequestOutput{{[]byte("a"), Output{Tokens: []uint32{1}}}}})
}

func TestDecodeOutputs_Errors(t *testing.T) {
	output := func(rest ...byte) []byte { return append([]byte{0x92, 0, 0x91}, rest...) }
	shapeOf33 := []byte{0x95, 0xa0, 0x90, 0xc0, 0xc0, 0x93, 0xa0, 0xdc, 0, 33}
	for _, c := range []struct {
		want string
		b    []byte
	}{
		{"outputs: msgp: ", nil},
		{"outputs: msgp: ", []byte(EngineCoreDead)},
		{"outputs: outputs: array of 4294967295 elements in 1 bytes", []byte{0x92, 0, 0xdd, 0xff, 0xff, 0xff, 0xff, 0xc0}},
		{"outputs: outputs: element 0: 1 elements, want at least 2", output(0x91, 0xa0)},
		{"outputs: outputs: element 0: finish_reason: 5, want 0 to 4", output(0x96, 0xa0, 0x90, 0xc0, 0xc0, 0xc0, 5)},
		{"new_token_ids: element 0", output(0x92, 0xa0, 0x91, 0xa0)},
		{"pooling_output: data: a map", output(0x95, 0xa0, 0x90, 0xc0, 0xc0, 0x93, 0xa0, 0x90, 0x80)},
		{"pooling_output: data: frame 0", output(0x95, 0xa0, 0x90, 0xc0, 0xc0, 0x93, 0xa0, 0x90, 0)},
		{"pooling_output: data: no ext value of type 3", output(0x95, 0xa0, 0x90, 0xc0, 0xc0, 0x93, 0xa0, 0x90, 0xd4, 1, 0)},
		{"pooling_output: tensor of 1 elements, want 3", output(0x95, 0xa0, 0x90, 0xc0, 0xc0, 0x91, 0xa0)},
		{"pooling_output: shape: dimension 0", output(0x95, 0xa0, 0x90, 0xc0, 0xc0, 0x93, 0xa0, 0x91, 0xce, 0xff, 0xff, 0xff, 0xff, 1)},
		{"pooling_output: shape: array of 33 elements, want at most 32", output(append(shapeOf33, make([]byte, 40)...)...)},
		{"new_logprobs: element 0: nil, want a tensor", output(0x93, 0xa0, 0x90, 0x93, 0xc0, 0xc0, 0xc0)},
		{"new_logprobs: logprobs of 0 elements, want at least 3", output(0x93, 0xa0, 0x90, 0x90)},
		{`events: element 0: key "type": 256`, output(0x98, 0xa0, 0x90, 0xc0, 0xc0, 0xc0, 0xc0, 0xc0, 0x91, 0x81, 0xa4, 't', 'y', 'p', 'e', 0xcd, 1, 0)},
		{`scheduler_stats: key "step_counter"`, append([]byte{0x93, 0, 0x90, 0x81}, "\xacstep_counter\xff"...)},
		{"utility_output: 1 elements, want at least 2", []byte{0x95, 0, 0x90, 0xc0, 0, 0x91, 1}},
	} {
		var o Outputs
		if err := DecodeOutputs(c.b, &o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("DecodeOutputs(%x): error %v, want %q in it", c.b, err, c.want)
		}
	}
}

func TestDecodeOutputs_NoAllocations(t *testing.T) {
	var b Batch
	ids, tokens := benchIDs()
	plainBatch(&b, ids, tokens)
	message := b.Finish(nil, 1)
	var o Outputs
	decode := func() {
		if err := DecodeOutputs(message, &o); err != nil {
			t.Fatal(err)
		}
	}
	decode()
	if got := testing.AllocsPerRun(20, decode); got > 1 {
		t.Errorf("%v allocations a message, want at most 1", got)
	}
}

// Decoding into what held a fuller message leaves nothing of it.
func TestDecodeOutputs_Reuse(t *testing.T) {
	full := fullOutput()
	var b Batch
	b.Reset(Version{}, 1)
	b.Add(EncodeID("a"), &full)
	b.Add(EncodeID("b"), &full)
	var o Outputs
	if err := DecodeOutputs(b.Finish(&SchedulerStats{Running: 1}, 1), &o); err != nil {
		t.Fatal(err)
	}
	b.Reset(Version{}, 2)
	b.Token(EncodeID("c"), []uint32{3})
	if err := DecodeOutputs(b.Finish(nil, 2), &o); err != nil {
		t.Fatal(err)
	}
	sameOutputs(t, &o, &Outputs{EngineIndex: 2, Timestamp: 2, Requests: []RequestOutput{{[]byte("c"), Output{Tokens: []uint32{3}}}}})
}

func TestUtilityMessages(t *testing.T) {
	negative := CallID{bits: math.MaxUint64, negative: true} // -1
	for _, c := range []struct {
		b    []byte
		want UtilityResult
	}{
		{AppendUtilityResult(nil, 1, 2, NewCallID(math.MaxUint64), nil), UtilityResult{CallID: NewCallID(math.MaxUint64)}},
		{AppendUtilityResult(nil, 1, 2, negative, msgp.Raw{0xc3}), UtilityResult{CallID: negative, Value: msgp.Raw{0xc3}}},
		{AppendUtilityFailure(nil, 1, 2, NewCallID(7), ""), UtilityResult{CallID: NewCallID(7), Failure: Some("")}},
	} {
		var o Outputs
		if err := DecodeOutputs(c.b, &o); err != nil {
			t.Fatal(err)
		}
		sameOutputs(t, &o, &Outputs{EngineIndex: 1, Timestamp: 2, Utility: &c.want})
	}
	// Python takes a nil result for a missing one: even a method without a result answers with the pair.
	void := elementsOf(t, AppendUtilityResult(nil, 0, 0, NewCallID(7), nil))
	sameBytes(t, void[outputsUtility], []byte{0x93, 7, 0xc0, 0x92, 0xc0, 0xc0})
}

func TestFinishReason_String(t *testing.T) {
	for reason, want := range map[FinishReason]string{
		FinishNone: "none", FinishStop: "stop", FinishLength: "length", FinishAbort: "abort", FinishError: "error",
		FinishRepetition: "repetition", FinishRepetition + 1: "unknown",
	} {
		if got := reason.String(); got != want {
			t.Errorf("FinishReason(%d) = %s, want %s", reason, got, want)
		}
	}
}
