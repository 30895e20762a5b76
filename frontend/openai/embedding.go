package openai

// EmbeddingRequest is the body of POST /v1/embeddings. Fields that are not here are ignored.
type EmbeddingRequest struct {
	Common
	Input          Prompt    `json:"input"`
	Messages       []Message `json:"messages"` // instead of Input: a chat to embed
	EncodingFormat string    `json:"encoding_format"`
	Dimensions     *int64    `json:"dimensions"`
	TruncatePrompt *int64    `json:"truncate_prompt_tokens"`
}

// The forms in which an embedding is sent.
const (
	EncodingFloat  = "float"
	EncodingBase64 = "base64" // of little-endian 32-bit floats
)

// Check refuses what no server answers, and settles the encoding. The error is an [*Error].
func (r *EmbeddingRequest) Check(l Limits) error {
	switch r.EncodingFormat {
	case "":
		r.EncodingFormat = EncodingFloat
	case EncodingFloat, EncodingBase64:
	default:
		return BadRequest("encoding_format", "encoding_format is %q, want float or base64.", shorten(r.EncodingFormat))
	}
	if t := r.TruncatePrompt; t != nil && *t < -1 {
		return BadRequest("truncate_prompt_tokens", "truncate_prompt_tokens must be at least -1, got %d.", *t)
	}
	if err := r.Common.check(); err != nil {
		return err
	}
	if err := checkAtLeastOne("dimensions", r.Dimensions); err != nil {
		return err
	}
	if len(r.Messages) == 0 {
		return r.Input.check("input", l)
	}
	for i := range r.Messages {
		if err := r.Messages[i].check(i); err != nil {
			return err
		}
	}
	return nil
}
