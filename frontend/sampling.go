package frontend

import (
	"cmp"

	"github.com/tinylib/msgp/msgp"

	"vllm-vcr/frontend/openai"
	"vllm-vcr/protocol/enginecore"
)

// wanted is what an answer should be, apart from its prompt: the same for all prompts of a request.
type wanted struct {
	openai.Sampling
	logprobs *int64 // alternatives for each token
	stream   bool
	trace    []uint32 // tokens to answer with
}

// params are the engine's parameters for an answer of at most that many tokens. Stop strings stay here.
func (w *wanted) params(maxTokens int, eos uint32) *enginecore.SamplingParams {
	p := enginecore.DefaultSampling()
	p.Explicit = enginecore.PythonKeys
	p.Watermarking = enginecore.Some(false)
	p.SkipReadingPrefixCache = enginecore.Some(false)
	p.MaxTokens = uint32(maxTokens)
	set(&p.Temperature, w.Temperature)
	set(&p.TopP, w.TopP)
	set(&p.TopK, w.TopK)
	set(&p.MinP, w.MinP)
	set(&p.PresencePenalty, w.PresencePenalty)
	set(&p.FrequencyPenalty, w.FrequencyPenalty)
	set(&p.RepetitionPenalty, w.RepetitionPenalty)
	p.TopK = max(0, p.TopK)
	p.Seed = optional(w.Seed)
	p.Logprobs = optional(w.logprobs)
	p.PromptLogprobs = optional(w.PromptLogprobs)
	if w.MinTokens != nil {
		p.MinTokens = uint32(*w.MinTokens) // at most maxTokens
	}
	p.AllowedTokenIDs = w.AllowedTokenIDs
	p.LogitBias = w.bias()
	p.IncludeStopString = w.IncludeStop
	p.SkipSpecialTokens = w.skipsSpecial()
	p.TraceDecodeTokenIDs = w.trace
	p.SkipClone = true
	p.OutputKind = enginecore.OutputFinalOnly
	if w.stream {
		p.OutputKind = enginecore.OutputDelta
	}
	w.stops(&p, eos)
	return &p
}

// stops sets the tokens at which the engine ends the answer.
func (w *wanted) stops(p *enginecore.SamplingParams, eos uint32) {
	p.StopTokenIDs = w.StopTokenIDs
	p.AllStopTokenIDs = append([]uint32{}, w.StopTokenIDs...)
	p.IgnoreEOS = w.IgnoreEOS
	if !w.IgnoreEOS {
		p.EOSTokenID = enginecore.Some(eos)
		p.AllStopTokenIDs = append(p.AllStopTokenIDs, eos)
	}
}

// bias is the map of logit_bias in msgpack; nil = none.
func (w *wanted) bias() msgp.Raw {
	if len(w.LogitBias) == 0 {
		return nil
	}
	b := msgp.AppendMapHeader(nil, uint32(len(w.LogitBias)))
	for id, bias := range w.LogitBias {
		b = msgp.AppendUint64(b, parseID(id))
		value, _ := bias.Float64() // checked with the request
		b = msgp.AppendFloat64(b, value)
	}
	return b
}

func (w *wanted) skipsSpecial() bool { return w.SkipSpecialTokens == nil || *w.SkipSpecialTokens }

// firstSeed is what the contents of an answer are drawn from where the front end draws them.
func (w *wanted) firstSeed(random uint64) uint64 {
	if w.Seed == nil {
		return random
	}
	return uint64(*w.Seed)
}

func set[T cmp.Ordered](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

func optional(v *int64) enginecore.Optional[int64] {
	if v == nil {
		return enginecore.Optional[int64]{}
	}
	return enginecore.Some(*v)
}
