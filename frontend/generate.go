package frontend

import "vllm-vcr/frontend/openai"

// generate takes tokens and answers with tokens: there is no text on this route.
func (s *Server) generate(c *call) error {
	var r openai.GenerateRequest
	if err := c.decode(&r); err != nil {
		return err
	}
	j, err := s.continueTokens(c, &r)
	if err != nil {
		return err
	}
	if r.Stream {
		return j.stream(&generationEvents{openai.GenerationEvents{Head: j.head}, r.IncludeUsage()})
	}
	choices, err := j.collect()
	if err != nil {
		return err
	}
	answer := openai.Generation{Head: j.head, Choices: choices, Usage: j.usage, KVTransfer: j.kvTransfer}
	writeJSON(c.ctx, answer.Append(nil))
	return nil
}

func (s *Server) continueTokens(c *call, r *openai.GenerateRequest) (*job, error) {
	limits := s.limits()
	if err := r.Check(limits); err != nil {
		return nil, err
	}
	most, err := r.AnswerTokens(limits)
	if err != nil {
		return nil, err
	}
	if err := checkVolume([][]uint32{r.TokenIDs}, r.Sampling.Count()); err != nil {
		return nil, err
	}
	o, err := s.order(c, &r.Common, "generate-tokens-")
	if err != nil {
		return nil, err
	}
	w := wanted{Sampling: r.Sampling.Sampling, logprobs: r.Sampling.Logprobs, stream: r.Stream, trace: r.Sampling.TraceDecodeIDs}
	if err := o.add(s, r.TokenIDs, &w, most, ""); err != nil {
		return nil, err
	}
	for _, each := range o.choices {
		each.tellsIDs, each.mute = true, true
		each.tellsPrompt = r.Sampling.PromptLogprobs != nil
		if r.ReturnTokenIDs {
			each.PromptTokenIDs = r.TokenIDs
		}
		if n := r.Sampling.Logprobs; n != nil {
			each.logprobs = &chatLogprobs{names: names{s.tokens, true}, alternatives: alternatives(*n, s)}
		}
	}
	return o.submit(s, c)
}

// generationEvents is a stream of /inference/v1/generate.
type generationEvents struct {
	openai.GenerationEvents
	usage bool
}

func (e *generationEvents) open(b []byte, _ *job) []byte { return b }

func (e *generationEvents) choice(b []byte, _ *job, c *choice) []byte {
	return e.Append(b, c.seal(), nil)
}

func (e *generationEvents) done(b []byte, j *job) []byte {
	if e.usage {
		b = e.Append(b, nil, &j.usage)
	}
	return append(b, openai.Done...)
}
