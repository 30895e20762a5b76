package openai

import "github.com/goccy/go-json"

// GenerateRequest is the body of POST /inference/v1/generate: token ids in, token ids out.
type GenerateRequest struct {
	Common
	Streaming
	TokenIDs []uint32         `json:"token_ids"`
	Sampling GenerateSampling `json:"sampling_params"`
}

// GenerateSampling are vLLM's own sampling parameters, as the engine knows them.
type GenerateSampling struct {
	Sampling
	MaxTokens      *int64          `json:"max_tokens"` // nil = 16
	Logprobs       *int64          `json:"logprobs"`
	TraceDecodeIDs []uint32        `json:"trace_decode_token_ids"` // the tokens to answer with
	EngineArgs     json.RawMessage `json:"extra_args"`             // what other routes, and this one too, call vllm_xargs
}

// settle leaves one name for what has two.
func (s *GenerateSampling) settle() error {
	switch {
	case isNull(s.EngineArgs):
		return nil
	case !isNull(s.ExtraArgs):
		return BadRequest("extra_args", "extra_args and vllm_xargs are two names of one thing: give one of them.")
	}
	s.ExtraArgs = s.EngineArgs
	return checkObject("extra_args", s.EngineArgs)
}

// Check refuses what no server with these limits answers. The error is an [*Error].
func (r *GenerateRequest) Check(l Limits) error {
	if len(r.TokenIDs) == 0 {
		return BadRequest("token_ids", "token_ids must be there and not be empty.")
	}
	if len(r.Sampling.Stop) > 0 {
		return BadRequest("sampling_params", "sampling_params.stop needs text, and this route has none: use stop_token_ids.")
	}
	for _, check := range []func() error{
		r.Common.check, r.Streaming.check, r.Sampling.settle,
		func() error { return checkIDs("token_ids", r.TokenIDs, l) },
		func() error { return checkIDs("trace_decode_token_ids", r.Sampling.TraceDecodeIDs, l) },
		func() error { return r.Sampling.check(l) },
		func() error { return checkLogprobs("logprobs", r.Sampling.Logprobs, l) },
		func() error { return checkAtLeastOne("max_tokens", r.Sampling.MaxTokens) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// AnswerTokens says how many tokens may follow the prompt.
func (r *GenerateRequest) AnswerTokens(l Limits) (int, error) {
	return answerTokens(r.Sampling.MaxTokens, defaultMaxTokens, len(r.TokenIDs), &r.Sampling.Sampling, l)
}
