package frontend

import (
	"strings"

	"vllm-vcr/frontend/openai"
	"vllm-vcr/frontend/tokenizer"
)

// encode makes tokens of a text that is to fit into the context. One that can't is refused before it costs more than a look.
func (s *Server) encode(text string, truncate *int64, l openai.Limits) ([]uint32, error) {
	if most := l.MaxModelLen * tokenizer.MaxTokenBytes; len(text) > most {
		if truncate == nil {
			return nil, openai.PromptTooLong(l.MaxModelLen, l)
		}
		text = strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return fit(s.tokens.Encode(text), truncate, l)
}

// fit keeps the last tokens of a prompt where the request wants that; -1 = as many as leave room for one more.
func fit(ids []uint32, truncate *int64, l openai.Limits) ([]uint32, error) {
	if truncate != nil {
		most := *truncate
		if most < 0 {
			most = int64(l.MaxModelLen) - 1
		}
		if int64(len(ids)) > most {
			ids = ids[int64(len(ids))-most:]
		}
	}
	if len(ids) == 0 {
		return nil, openai.BadRequest("prompt", "The prompt cannot be empty.")
	}
	return ids, nil
}

// prompts are the token ids of a request's prompts.
func (s *Server) prompts(p *openai.Prompt, truncate *int64, l openai.Limits) ([][]uint32, error) {
	list := make([][]uint32, 0, p.Len())
	for _, text := range p.Texts {
		ids, err := s.encode(text, truncate, l)
		if err != nil {
			return nil, err
		}
		list = append(list, ids)
	}
	for _, ids := range p.Tokens {
		ids, err := fit(ids, truncate, l)
		if err != nil {
			return nil, err
		}
		list = append(list, ids)
	}
	return list, nil
}

// checkVolume refuses a request that would send more tokens to the engines than is good for anybody.
func checkVolume(prompts [][]uint32, n int) error {
	total := 0
	for _, ids := range prompts {
		total += len(ids) * n
	}
	if total > openai.MaxPromptTokens {
		return openai.BadRequest("prompt", "The prompts have %d tokens in all, times n, want at most %d.", total, openai.MaxPromptTokens)
	}
	return nil
}

// promptText is what echo shows of a prompt.
func (s *Server) promptText(p *openai.Prompt, i int) string {
	if i < len(p.Texts) {
		return p.Texts[i]
	}
	text, err := s.tokens.Decode(p.Tokens[i-len(p.Texts)])
	if err != nil {
		return "" // its ids were checked
	}
	return text
}
