package frontend

import (
	"vllm-vcr/frontend/openai"
	"vllm-vcr/frontend/tokenizer"
)

// tokenize shows the tokens of a text or a conversation.
func (s *Server) tokenize(c *call) error {
	var r openai.TokenizeRequest
	if err := c.decode(&r); err != nil {
		return err
	}
	if err := r.Check(); err != nil {
		return err
	}
	if _, _, err := s.resolve(r.Model); err != nil {
		return err
	}
	ids := s.tokensOf(&r)
	answer := struct {
		Count       int      `json:"count"`
		MaxModelLen int      `json:"max_model_len"`
		Tokens      []uint32 `json:"tokens"`
		Strings     []string `json:"token_strs"`
	}{len(ids), s.limits().MaxModelLen, ids, nil}
	if r.ReturnTokenStrings {
		answer.Strings = make([]string, 0, len(ids))
		for _, id := range ids {
			answer.Strings = append(answer.Strings, tokenizer.Valid(s.tokens.Bytes(id)))
		}
	}
	return writeValue(c, answer)
}

func (s *Server) tokensOf(r *openai.TokenizeRequest) []uint32 {
	if r.Prompt != nil {
		return append([]uint32{}, s.tokens.Encode(*r.Prompt)...)
	}
	chat := openai.ChatRequest{Messages: r.Messages, AddGenerationPrompt: r.AddGenerationPrompt}
	return s.tokens.Chat(render(&chat), chat.GenerationPrompt())
}

// detokenize shows the text of tokens.
func (s *Server) detokenize(c *call) error {
	var r openai.DetokenizeRequest
	if err := c.decode(&r); err != nil {
		return err
	}
	if err := r.Check(s.limits()); err != nil {
		return err
	}
	if _, _, err := s.resolve(r.Model); err != nil {
		return err
	}
	text, err := s.tokens.Decode(r.Tokens)
	if err != nil {
		return err
	}
	return writeValue(c, struct {
		Prompt string `json:"prompt"`
	}{text})
}
