package enginecore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tinylib/msgp/msgp"
)

// fullOutput has something in every slot.
func fullOutput() Output {
	inline := Tensor{DType: "<i4", Shape: []int{1}, Data: []byte{1, 0, 0, 0}}
	framed := Tensor{DType: "float32", Shape: []int{2, 128}, Frame: 1}
	return Output{
		Tokens: []uint32{1, 70000}, Logprobs: &Logprobs{inline, framed, inline}, PromptLogprobs: &Logprobs{framed, inline, inline}, Pooling: &framed,
		Finish: FinishRepetition, StopReason: StopReason{Text: "halt"}, Events: []Event{{EventQueued, 1.5}, {EventScheduled, 2.5}},
		KVTransfer: msgp.Raw{0x80}, ECTransfer: msgp.Raw{0x81, 0xa1, 'e', 1}, TraceHeaders: msgp.Raw{0x81, 0xa1, 't', 1},
		Prefill: &PrefillStats{1, 2, 3, 4, 5, 6}, RoutedExperts: &inline, NaNLogits: 7, MMCacheMisses: []string{"m"}, SamplingMask: msgp.Raw{0x90},
		SpecDecode: &SpecDecodingMetrics{2, []uint64{1, 2, 3}, 4, []uint64{5}, []uint64{6}}, PromptTokenLogprobs: &inline,
		Error: &RequestError{"engine_paused", "later", true},
	}
}

// limitedTo drops what a line doesn't have.
func limitedTo(v Version, o Output) Output {
	if !v.AtLeast(26) {
		o.ECTransfer, o.Prefill = nil, &PrefillStats{1, 2, 3, 4, 5, 0}
	}
	if !v.AtLeast(33) {
		o.MMCacheMisses, o.SamplingMask, o.SpecDecode, o.PromptTokenLogprobs, o.Error = nil, nil, nil, nil, nil
	}
	return o
}

func TestBatch_FullOutputOnEveryLine(t *testing.T) {
	full := fullOutput()
	for minor, length := range map[int]int{25: 13, 26: 14, 27: 14, 28: 14, 29: 14, 30: 14, 31: 14, 32: 14, 33: 19} {
		t.Run(fmt.Sprintf("0.%d", minor), func(t *testing.T) {
			v := mustVersion(t, fmt.Sprintf("0.%d", minor))
			var b Batch
			b.Reset(v, 258)
			b.Add(EncodeID("full"), &full)
			b.Token(EncodeID("plain"), []uint32{9})
			b.Finished(EncodeID("full"))
			b.WeightVersion("v7")
			message := b.Finish(&SchedulerStats{Running: 2}, 12.5)

			if got := len(elementsOf(t, elementsOf(t, elementsOf(t, message)[outputsRequests])[0])); got != length {
				t.Errorf("output of %d elements, want %d", got, length)
			}
			got := Outputs{Version: v}
			if err := DecodeOutputs(message, &got); err != nil {
				t.Fatal(err)
			}
			want := Outputs{
				Version: v, EngineIndex: 258, Timestamp: 12.5, Stats: &SchedulerStats{Running: 2}, Finished: []string{"full"},
				Requests: []RequestOutput{{[]byte("full"), limitedTo(v, full)}, {[]byte("plain"), Output{Tokens: []uint32{9}}}},
			}
			want.Stats.EvictionEvents, want.Stats.PrefixCache.HitsBySource, want.Stats.FetchingByStage = msgp.Raw{0x90}, nil, nil
			if v.AtLeast(33) {
				want.WeightVersion = "v7"
				want.Stats.PrefixCache.HitsBySource, want.Stats.FetchingByStage = msgp.Raw{0x80}, msgp.Raw{0x80}
			}
			sameOutputs(t, &got, &want)
		})
	}
}

// Each slot alone decides the length, and everything before it is nil but for slot 13, which frontends want as a number.
func TestBatch_TrimsAfterEachSlot(t *testing.T) {
	full := fullOutput()
	only := map[int]Output{
		slotTokens: {}, slotLogprobs: {Logprobs: full.Logprobs}, slotPromptLogprobs: {PromptLogprobs: full.PromptLogprobs}, slotPooling: {Pooling: full.Pooling},
		slotFinish: {Finish: FinishStop}, slotStopReason: {StopReason: StopReason{Token: Some[int64](0)}}, slotEvents: {Events: full.Events},
		slotKVTransfer: {KVTransfer: full.KVTransfer}, slotECTransfer: {ECTransfer: full.ECTransfer}, slotTraceHeaders: {TraceHeaders: full.TraceHeaders},
		slotPrefill: {Prefill: full.Prefill}, slotRoutedExperts: {RoutedExperts: full.RoutedExperts}, slotNaNLogits: {NaNLogits: 1},
		slotMMCacheMisses: {MMCacheMisses: []string{}}, slotSamplingMask: {SamplingMask: full.SamplingMask}, slotSpecDecode: {SpecDecode: full.SpecDecode},
		slotPromptTokenLogprobs: {PromptTokenLogprobs: full.PromptTokenLogprobs}, slotError: {Error: full.Error},
	}
	for slot, o := range only {
		elements := elementsOf(t, appendOutput(nil, Version{}, EncodeID("a"), &o))
		if len(elements) != slot+1 {
			t.Errorf("%s: %d elements, want %d", slotNames[slot], len(elements), slot+1)
		}
		for i := slotLogprobs; i < slot; i++ {
			want := byte(0xc0)
			if i == slotNaNLogits {
				want = 0
			}
			if elements[i][0] != want {
				t.Errorf("%s: element %d is %x, want %x", slotNames[slot], i, elements[i], want)
			}
		}
	}
}

// What a line doesn't know is not sent on it, not even as nil.
func TestBatch_NeverLongerThanTheLine(t *testing.T) {
	o := Output{Error: &RequestError{Code: "engine_paused"}, Finish: FinishError}
	if got := len(elementsOf(t, appendOutput(nil, mustVersion(t, "0.27"), EncodeID("a"), &o))); got != slotFinish+1 {
		t.Errorf("error on 0.27: %d elements, want %d", got, slotFinish+1)
	}
	o = Output{ECTransfer: msgp.Raw{0x80}}
	if got := len(elementsOf(t, appendOutput(nil, mustVersion(t, "0.25"), EncodeID("a"), &o))); got != 2 {
		t.Errorf("ec_transfer_params on 0.25: %d elements, want 2", got)
	}
	o = Output{NaNLogits: 1}
	if got := elementsOf(t, appendOutput(nil, mustVersion(t, "0.25"), EncodeID("a"), &o)); len(got) != 13 || got[12][0] != 1 {
		t.Errorf("num_nans_in_logits on 0.25: %x, want it at 12", got)
	}
}

// The outer array ends after its last element that says something, and a message that says nothing is none.
func TestBatch_Envelope(t *testing.T) {
	id, none := EncodeID("a"), []byte(nil)
	for _, c := range []struct {
		name string
		fill func(b *Batch) []byte
		want []byte
	}{
		{"nothing", func(b *Batch) []byte { b.WeightVersion("x"); return b.Finish(nil, 1) }, none},
		{"a token", func(b *Batch) []byte { b.Token(id, []uint32{5}); return b.Finish(nil, 1) },
			[]byte{0x94, 7, 0x91, 0x92, 0xa1, 'a', 0x91, 5, 0xc0, 0xcb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0}},
		{"no token", func(b *Batch) []byte { b.Token(id, nil); return b.Finish(nil, 0) },
			[]byte{0x94, 7, 0x91, 0x92, 0xa1, 'a', 0x90, 0xc0, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0}},
		{"finished only", func(b *Batch) []byte { b.Finished(id); b.Finished(id); return b.Finish(nil, 0) },
			[]byte{0x96, 7, 0x90, 0xc0, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0x92, 0xa1, 'a', 0xa1, 'a'}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b Batch
			b.Reset(Version{}, 7)
			sameBytes(t, c.fill(&b), c.want)
		})
	}
}

func TestBatch_StatsAlone(t *testing.T) {
	var b Batch
	b.Reset(Version{}, 0)
	message := elementsOf(t, b.Finish(&SchedulerStats{KVCacheUsage: 1}, 0))
	if len(message) != 4 || message[outputsStats][0] != 0xde {
		t.Fatalf("message %x, want four elements with stats", message)
	}
	stats := generic(t, message[outputsStats]).(map[string]any)
	if _, isFloat := stats["kv_cache_usage"].(float64); !isFloat {
		t.Errorf("kv_cache_usage = %v, want a float", stats["kv_cache_usage"])
	}
}

// Many requests and large indices need longer headers, which still end where the outputs begin.
func TestBatch_LongHead(t *testing.T) {
	for _, n := range []int{15, 16, 65536} {
		var b Batch
		b.Reset(Version{}, 70000)
		for range n {
			b.Token(EncodeID("abcdefg"), []uint32{1})
		}
		size := b.Size()
		message := b.Finish(nil, 0)
		var o Outputs
		if err := DecodeOutputs(message, &o); err != nil || len(o.Requests) != n || b.Len() != n || o.EngineIndex != 70000 {
			t.Errorf("%d outputs: %d decoded, Len %d, index %d, %v", n, len(o.Requests), b.Len(), o.EngineIndex, err)
		}
		if size != 11*n {
			t.Errorf("%d outputs: Size %d, want %d", n, size, 11*n)
		}
	}
}

func TestBatch_Size(t *testing.T) {
	var b Batch
	if b.Size() != 0 || b.Len() != 0 {
		t.Errorf("zero batch: size %d, length %d, want 0", b.Size(), b.Len())
	}
	b.Reset(Version{}, 0)
	b.Token(EncodeID("a"), []uint32{300, 1})
	b.Finished(EncodeID("a"))
	if got := b.Size(); got != 1+2+1+3+1+2 {
		t.Errorf("size %d, want 10", got)
	}
	b.Reset(Version{}, 0)
	if b.Size() != 0 || b.Finish(nil, 0) != nil {
		t.Error("Reset left something behind")
	}
}

func TestBatch_NoAllocations(t *testing.T) {
	var b Batch
	ids, tokens := benchIDs()
	o := fullOutput()
	stats := SchedulerStats{Running: 1, SpecDecoding: &SpecDecodingStats{SpecTokens: 2}}
	step := func() {
		plainBatch(&b, ids, tokens)
		b.Add(ids[0], &o)
		b.Finished(ids[0])
		b.Finish(&stats, 1)
	}
	step()
	if got := testing.AllocsPerRun(100, step); got != 0 {
		t.Errorf("%v allocations a step, want 0", got)
	}
}

// A batch of tokens is the same message whichever way it is added.
func TestBatch_TokenIsAdd(t *testing.T) {
	for _, tokens := range [][]uint32{nil, {1}, {1 << 31, 2}, make([]uint32, 20)} {
		var b Batch
		b.Reset(Version{}, 0)
		b.Token(EncodeID("id"), tokens)
		sameBytes(t, b.buf[headRoom:], appendOutput(nil, Version{}, EncodeID("id"), &Output{Tokens: tokens}))
	}
}

func TestStats_EveryField(t *testing.T) {
	raw := msgp.Raw{0x81, 0xa1, 'k', 1}
	prefix := PrefixCacheStats{Reset: true, Requests: 1, Queries: 2, Hits: 3, PreemptedRequests: 4, PreemptedQueries: 5, PreemptedHits: 6, HitsBySource: raw}
	want := SchedulerStats{
		Running: 1, Waiting: 2, SkippedWaiting: 3, StepCounter: 4, CurrentWave: 5, KVCacheUsage: 0.5, PrefixCache: prefix, Connector: &prefix,
		SpecDecoding: &SpecDecodingStats{1, 2, 3, 4, []uint64{5}, []uint64{6}}, WaitingLoRAs: []LoRACount{{"b", 1}, {"a", 2}}, RunningLoRAs: []LoRACount{{"c", 3}},
		IterationDetails: raw, EvictionEvents: msgp.Raw{0x91, 1}, KVConnector: raw, CUDAGraph: raw, Perf: raw, FetchingByStage: raw, ECConnector: raw,
	}
	var got SchedulerStats
	d := decoder{b: appendStats(nil, Version{}, &want)}
	d.stats(&got)
	if err := d.end("stats"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stats differ (-want +got):\n%s", diff)
	}
}

// The prepared keys are those that would be written one by one.
func TestStats_PlainTail(t *testing.T) {
	for _, version := range []string{"0.25", "0.27", "0.33"} {
		v := mustVersion(t, version)
		plain := appendStats(nil, v, &SchedulerStats{})
		tail := appendStatsTail(nil, v, &SchedulerStats{})
		if !strings.HasSuffix(string(plain), string(tail)) {
			t.Errorf("%s: the prepared tail differs", version)
		}
		if got, want := len(generic(t, plain).(map[string]any)), int(plain[2]); got != want {
			t.Errorf("%s: %d keys, header says %d", version, got, want)
		}
	}
}

func TestBatch_Reset_GivesABurstsMemoryBack(t *testing.T) {
	var b Batch
	b.Reset(Version{}, 0)
	b.Token(EncodeID("a"), make([]uint32, 2*keptCapacity))
	for range keptCapacity {
		b.Finished(EncodeID("a"))
	}
	b.Reset(Version{}, 0)
	if got := cap(b.buf) + cap(b.finished); got > keptCapacity {
		t.Errorf("%d bytes kept, want at most %d", got, keptCapacity)
	}
}
