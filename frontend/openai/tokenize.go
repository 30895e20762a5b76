package openai

// TokenizeRequest is the body of POST /tokenize: a prompt or a chat.
type TokenizeRequest struct {
	Model               string    `json:"model"`
	Prompt              *string   `json:"prompt"`
	Messages            []Message `json:"messages"`
	AddGenerationPrompt *bool     `json:"add_generation_prompt"`
	ReturnTokenStrings  bool      `json:"return_token_strs"`
}

// Check asks for one of the two. The error is an [*Error].
func (r *TokenizeRequest) Check() error {
	if (r.Prompt != nil) == (len(r.Messages) > 0) {
		return BadRequest("prompt", "want either prompt, a string, or messages.")
	}
	for i := range r.Messages {
		if err := r.Messages[i].check(i); err != nil {
			return err
		}
	}
	return nil
}

// DetokenizeRequest is the body of POST /detokenize.
type DetokenizeRequest struct {
	Model  string   `json:"model"`
	Tokens []uint32 `json:"tokens"`
}

// Check refuses ids that the vocabulary doesn't have. The error is an [*Error].
func (r *DetokenizeRequest) Check(l Limits) error {
	if r.Tokens == nil {
		return BadRequest("tokens", "tokens must be there.")
	}
	return checkIDs("tokens", r.Tokens, l)
}
