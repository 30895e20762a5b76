package dispatch

import (
	"testing"

	"vllm-vcr/protocol/enginecore"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestDispatcher_Observer(t *testing.T) {
	w := &witness{}
	r := newRig(t, 1, w)
	s, canceled := r.submit(t, request("a", 9)), r.submit(t, request("b", 9))
	e := r.engines[0]
	prefill := enginecore.PrefillStats{Prompt: 3, Computed: 1, Cached: 2, LocalCached: 2}
	e.send(10, nil, output{s.ID(), enginecore.Output{Tokens: []uint32{1}, Prefill: &prefill, Events: []enginecore.Event{
		{Type: enginecore.EventQueued, Time: 4}, {Type: enginecore.EventScheduled, Time: 7},
		{Type: enginecore.EventPreempted, Time: 8}, {Type: enginecore.EventScheduled, Time: 9},
	}}}, tokens(canceled.ID(), 1))
	e.send(10.5, nil, tokens(s.ID(), 2, 3), tokens("stranger", 1))
	e.send(12, nil, finished(s.ID(), enginecore.FinishStop, 4))
	drain(within(t), s)
	canceled.Cancel()
	e.send(13, nil, tokens(canceled.ID(), 2))
	steps, ends := w.seen()
	if n := len(steps[0].FirstTokens); n != 2 {
		t.Errorf("%d times to the first token, want 2", n)
	}
	steps[0].FirstTokens = nil // by the real clock
	wantSteps := []Step{
		{Generated: 2, Prefill: enginecore.PrefillStats{Prompt: 6, Computed: 4, Cached: 2, LocalCached: 2}, Preemptions: 1},
		{Generated: 2, Gaps: []float64{0.5}},
		{Generated: 1, Gaps: []float64{1.5}},
	}
	if diff := cmp.Diff(wantSteps, steps, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	nine := enginecore.Some[uint32](9)
	wantEnds := []End{
		{
			Reason: enginecore.FinishStop, Prompt: 3, Generated: 4, Computed: 1, Preemptions: 1, MaxTokens: nine,
			Queue: 3, Prefill: 3, Decode: 2, Inference: 5, Choices: 1, MaxGenerated: 4,
		},
		{Reason: enginecore.FinishAbort, Prompt: 3, Generated: 1, Computed: 3, MaxTokens: nine, Choices: 1, MaxGenerated: 1},
	}
	if diff := cmp.Diff(wantEnds, ends, cmpopts.IgnoreFields(End{}, "Total")); diff != "" {
		t.Errorf("ends (-want +got):\n%s", diff)
	}
}
