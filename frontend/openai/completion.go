package openai

import "strconv"

// defaultMaxTokens is OpenAI's, and vLLM's, for completions only.
const defaultMaxTokens = 16

// CompletionRequest is the body of POST /v1/completions. Fields that are not here are ignored.
type CompletionRequest struct {
	Common
	Sampling
	Streaming
	Output
	Prompt    Prompt `json:"prompt"`
	MaxTokens *int64 `json:"max_tokens"` // nil = 16, or what fits
	Echo      bool   `json:"echo"`
	Logprobs  *int64 `json:"logprobs"` // alternatives for each token
	Suffix    string `json:"suffix"`
}

// Check refuses what no server with these limits answers. The error is an [*Error].
func (r *CompletionRequest) Check(l Limits) error {
	if err := r.Prompt.check("prompt", l); err != nil {
		return err
	}
	if r.Suffix != "" {
		return BadRequest("suffix", "suffix is not supported by this model.")
	}
	for _, check := range []func() error{
		r.Common.check, r.Streaming.check, r.Output.check,
		func() error { return r.Sampling.check(l) },
		func() error { return checkLogprobs("logprobs", r.Logprobs, l) },
		r.checkMaxTokens, r.checkStream,
		func() error { return checkSequences(r.Prompt.Len(), r.Count()) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (r *CompletionRequest) checkMaxTokens() error {
	if r.MaxTokens == nil || *r.MaxTokens == 0 && r.Echo {
		return nil
	}
	return checkAtLeastOne("max_tokens", r.MaxTokens)
}

func (r *CompletionRequest) checkStream() error {
	if r.Stream && r.PromptLogprobs != nil {
		return BadRequest("prompt_logprobs", "prompt_logprobs are not available with `stream`: true.")
	}
	return nil
}

// EchoOnly says whether the prompt alone is asked for.
func (r *CompletionRequest) EchoOnly() bool { return r.Echo && r.MaxTokens != nil && *r.MaxTokens == 0 }

// AnswerTokens says how many tokens may follow a prompt of that many tokens.
func (r *CompletionRequest) AnswerTokens(promptTokens int, l Limits) (int, error) {
	asked := r.MaxTokens
	if r.EchoOnly() {
		asked = new(int64(1)) // vLLM's engine makes one, which isn't shown
	}
	return answerTokens(asked, defaultMaxTokens, promptTokens, &r.Sampling, l)
}

func checkAtLeastOne(param string, v *int64) error {
	if v != nil && *v < 1 {
		return BadRequest(param, "%s must be at least 1, got %d.", param, *v)
	}
	return nil
}

func checkSequences(prompts, n int) error {
	if prompts*n > MaxSequences {
		return BadRequest("n", "%d prompts with n=%d are %d answers, want at most %d.", prompts, n, prompts*n, MaxSequences)
	}
	return nil
}

// answerTokens fits the number of tokens that were asked for, nil where none was, into the context. usual bounds what is
// given to a request that doesn't ask; 0 = nothing does.
func answerTokens(asked *int64, usual, promptTokens int, s *Sampling, l Limits) (int, error) {
	room := l.MaxModelLen - promptTokens
	switch {
	case room < 1 && asked == nil:
		return 0, contextError("The prompt has %d tokens, which leaves no room for an answer.", l, promptTokens)
	case room < 1 || asked != nil && *asked > int64(room):
		return 0, contextError("The prompt has %d tokens and %d more were asked for.", l, promptTokens, *asked)
	}
	most := room
	switch {
	case asked != nil:
		most = int(*asked)
	case usual > 0:
		most = min(room, usual)
	}
	if s.MinTokens != nil && *s.MinTokens > int64(most) {
		return 0, BadRequest("min_tokens", "min_tokens must be less than or equal to max_tokens=%d, got %d.", most, *s.MinTokens)
	}
	return most, nil
}

// PromptTooLong refuses a prompt that can't fit: it has at least that many tokens.
func PromptTooLong(atLeast int, l Limits) *Error {
	return contextError("The prompt has more than %d tokens.", l, atLeast)
}

func contextError(format string, l Limits, numbers ...any) *Error {
	text := BadRequest("input_tokens", format, numbers...)
	text.Message = "This model's maximum context length is " + strconv.Itoa(l.MaxModelLen) + " tokens. " + text.Message
	return text
}
