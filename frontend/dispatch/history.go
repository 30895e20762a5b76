package dispatch

import (
	"sync"
	"time"

	"vllm-vcr/protocol/enginecore"
)

// history is what happened to a request so far. Its stream's lock guards it.
type history struct {
	arrived     time.Time
	prompt      int // tokens
	maxTokens   enginecore.Optional[uint32]
	group       *group
	generated   int
	computed    int
	preemptions int
	begun       bool // an output came

	// By the engine's clock, in seconds; 0 = not yet.
	queued, scheduled, first, last float64
}

// moment is when an output came: here, and by the engine's clock in seconds.
type moment struct {
	received time.Time
	engine   float64
}

// step is what is made of one message.
type step struct {
	Step
	ends []End
}

func (s *step) reset() {
	*s = step{Step: Step{FirstTokens: s.FirstTokens[:0], Gaps: s.Gaps[:0]}, ends: s.ends[:0]}
}

// output enters one output.
func (h *history) output(o *enginecore.Output, at moment, step *Step) {
	for _, e := range o.Events {
		h.event(e, step)
	}
	if len(o.Tokens) == 0 && o.Pooling == nil {
		return
	}
	if !h.begun {
		h.begin(o, at, step)
	} else {
		step.Gaps = append(step.Gaps, max(0, at.engine-h.last))
	}
	h.last = at.engine
	h.generated += len(o.Tokens)
	step.Generated += len(o.Tokens)
}

func (h *history) event(e enginecore.Event, step *Step) {
	switch {
	case e.Type == enginecore.EventQueued:
		h.queued = e.Time
	case e.Type == enginecore.EventScheduled && h.scheduled == 0:
		h.scheduled = e.Time
	case e.Type == enginecore.EventPreempted:
		h.preemptions++
		step.Preemptions++
	}
}

// begin enters the first output. An engine that tells nothing of the prefill computed all of the prompt.
func (h *history) begin(o *enginecore.Output, at moment, step *Step) {
	h.begun = true
	h.first = at.engine
	p := enginecore.PrefillStats{Prompt: uint64(h.prompt), Computed: uint64(h.prompt)}
	if o.Prefill != nil {
		p = *o.Prefill
	}
	h.computed = int(p.Computed)
	step.FirstTokens = append(step.FirstTokens, max(0, at.received.Sub(h.arrived).Seconds()))
	sum := &step.Prefill
	sum.Prompt += p.Prompt
	sum.Computed += p.Computed
	sum.Cached += p.Cached
	sum.LocalCached += p.LocalCached
	sum.ExternalCached += p.ExternalCached
	sum.CacheCreation += p.CacheCreation
}

// end is called once.
func (h *history) end(reason enginecore.FinishReason, now time.Time) End {
	e := End{
		Reason: reason, Prompt: h.prompt, Generated: h.generated, Computed: h.computed, Preemptions: h.preemptions,
		MaxTokens: h.maxTokens, Total: max(0, now.Sub(h.arrived).Seconds()),
	}
	if h.scheduled > 0 {
		e.Queue = max(0, h.scheduled-h.queued)
	}
	if h.begun {
		e.Decode = h.last - h.first
	}
	if h.begun && h.scheduled > 0 {
		e.Prefill = max(0, h.first-h.scheduled)
	}
	e.Inference = e.Prefill + e.Decode
	e.Choices, e.MaxGenerated = h.group.ended(h.generated)
	return e
}

// group is the requests that one call made.
type group struct {
	choices int

	mu           sync.Mutex
	left         int
	maxGenerated int
}

func newGroup(choices int) *group { return &group{choices: choices, left: choices} }

// ended enters the end of one; the result is 0 and 0 unless it is the last.
func (g *group) ended(generated int) (choices, maxGenerated int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.maxGenerated = max(g.maxGenerated, generated)
	g.left--
	if g.left > 0 {
		return 0, 0
	}
	return g.choices, g.maxGenerated
}
