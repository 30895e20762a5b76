package frontend

import (
	"strconv"

	"vllm-vcr/frontend/openai"
)

// completions continues prompts.
func (s *Server) completions(c *call) error {
	var r openai.CompletionRequest
	if err := c.decode(&r); err != nil {
		return err
	}
	j, err := s.complete(c, &r)
	if err != nil {
		return err
	}
	if r.Stream {
		return j.stream(newCompletionEvents(j, &r.Streaming))
	}
	choices, err := j.collect()
	if err != nil {
		return err
	}
	answer := openai.Completion{Head: j.head, Choices: choices, Usage: j.usage, KVTransfer: j.kvTransfer}
	writeJSON(c.ctx, answer.Append(nil))
	return nil
}

// complete checks a request and gives it to the engines.
func (s *Server) complete(c *call, r *openai.CompletionRequest) (*job, error) {
	limits := s.limits()
	if err := r.Check(limits); err != nil {
		return nil, err
	}
	o, err := s.order(c, &r.Common, "cmpl-")
	if err != nil {
		return nil, err
	}
	prompts, err := s.prompts(&r.Prompt, r.TruncatePrompt, limits)
	if err != nil {
		return nil, err
	}
	if err := checkVolume(prompts, r.Count()); err != nil {
		return nil, err
	}
	w := wanted{Sampling: r.Sampling, logprobs: r.Logprobs, stream: r.Stream}
	if r.Echo && r.Logprobs != nil {
		w.PromptLogprobs = r.Logprobs
	}
	if err := o.constrain(&r.Output, &w); err != nil {
		return nil, err
	}
	for i, ids := range prompts {
		most, err := r.AnswerTokens(len(ids), limits)
		if err != nil {
			return nil, err
		}
		if err := o.add(s, ids, &w, most, "-"+strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	s.completionChoices(o, r, prompts)
	return o.submit(s, c)
}

// completionChoices sets up what is special to the choices of a completion.
func (s *Server) completionChoices(o *order, r *openai.CompletionRequest, prompts [][]uint32) {
	n := r.Count()
	for i, c := range o.choices {
		c.mute = r.EchoOnly()
		c.tellsPrompt = r.PromptLogprobs != nil
		if r.Echo {
			c.Text = append(c.Text, s.promptText(&r.Prompt, i/n)...)
		}
		if r.ReturnTokenIDs {
			c.PromptTokenIDs = prompts[i/n]
		}
		if r.Logprobs != nil {
			c.echoesLogprobs = r.Echo
			c.logprobs = &completionLogprobs{names: c.names, alternatives: alternatives(*r.Logprobs, s)}
		}
	}
}

// alternatives is how many are told; -1 = all there are.
func alternatives(n int64, s *Server) int {
	if n < 0 {
		return s.tokens.Size()
	}
	return int(n)
}
