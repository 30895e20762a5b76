package openai

// ChatRequest is the body of POST /v1/chat/completions. Fields that are not here are ignored.
type ChatRequest struct {
	Common
	Sampling
	Streaming
	Output
	Messages            []Message  `json:"messages"`
	MaxTokens           *int64     `json:"max_tokens"`
	MaxCompletionTokens *int64     `json:"max_completion_tokens"` // wins; both nil = what fits
	Logprobs            bool       `json:"logprobs"`
	TopLogprobs         *int64     `json:"top_logprobs"` // 0 where nil; only with Logprobs
	Tools               []Tool     `json:"tools"`
	ToolChoice          ToolChoice `json:"tool_choice"`
	ParallelToolCalls   *bool      `json:"parallel_tool_calls"`
	AddGenerationPrompt *bool      `json:"add_generation_prompt"`
	ContinueFinal       bool       `json:"continue_final_message"`
}

// Check refuses what no server with these limits answers, and settles the tool choice. The error is an [*Error].
func (r *ChatRequest) Check(l Limits) error {
	for _, check := range []func() error{
		r.checkMessages, r.Common.check, r.Streaming.check, r.Output.check, r.checkTools,
		func() error { return r.Sampling.check(l) },
		func() error { return r.checkLogprobs(l) },
		func() error { return checkAtLeastOne("max_tokens", r.MaxTokens) },
		func() error { return checkAtLeastOne("max_completion_tokens", r.MaxCompletionTokens) },
		r.checkPrompt,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (r *ChatRequest) checkMessages() error {
	if len(r.Messages) == 0 {
		return BadRequest("messages", "messages must be there and not be empty.")
	}
	for i := range r.Messages {
		if err := r.Messages[i].check(i); err != nil {
			return err
		}
	}
	return nil
}

func (r *ChatRequest) checkTools() error {
	if err := checkTools(r.Tools); err != nil {
		return err
	}
	return r.ToolChoice.settle(r.Tools)
}

func (r *ChatRequest) checkLogprobs(l Limits) error {
	if r.TopLogprobs != nil && *r.TopLogprobs != 0 && !r.Logprobs {
		return BadRequest("top_logprobs", "top_logprobs are allowed only with `logprobs`: true.")
	}
	return checkLogprobs("top_logprobs", r.TopLogprobs, l)
}

func (r *ChatRequest) checkPrompt() error {
	if r.Stream && r.PromptLogprobs != nil {
		return BadRequest("prompt_logprobs", "prompt_logprobs are not available with `stream`: true.")
	}
	if r.ContinueFinal && r.GenerationPrompt() && r.AddGenerationPrompt != nil {
		return BadRequest("continue_final_message", "continue_final_message and add_generation_prompt exclude each other.")
	}
	return nil
}

// GenerationPrompt says whether the prompt ends with the beginning of an answer.
func (r *ChatRequest) GenerationPrompt() bool {
	if r.AddGenerationPrompt != nil {
		return *r.AddGenerationPrompt
	}
	return !r.ContinueFinal
}

// Alternatives is the number of logprobs for each token beside its own; false where none are wanted.
func (r *ChatRequest) Alternatives() (int64, bool) {
	if r.TopLogprobs == nil {
		return 0, r.Logprobs
	}
	return *r.TopLogprobs, r.Logprobs
}

// AnswerTokens says how many tokens may follow a prompt of that many tokens.
func (r *ChatRequest) AnswerTokens(promptTokens int, l Limits) (int, error) {
	asked := r.MaxCompletionTokens
	if asked == nil {
		asked = r.MaxTokens
	}
	return answerTokens(asked, l.ChatAnswer, promptTokens, &r.Sampling, l)
}
