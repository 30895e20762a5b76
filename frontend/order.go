package frontend

import (
	"fmt"
	"time"

	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/frontend/openai"
	"vllm-vcr/frontend/tokenizer"
	"vllm-vcr/protocol/enginecore"
)

// order is a request that is being made ready for the engines.
type order struct {
	head     openai.Head
	common   *openai.Common
	lora     *enginecore.LoRARequest
	rank     enginecore.Optional[int]
	arrived  time.Time
	form     *form            // what answers must be; nil = anything
	stops    *tokenizer.Stops // of all choices; nil = none
	requests []dispatch.Request
	choices  []*choice
}

// order begins one: it finds the model and the engine that are asked for, and names the answer.
func (s *Server) order(c *call, r *openai.Common, prefix string) (*order, error) {
	model, lora, err := s.resolve(r.Model)
	if err != nil {
		return nil, err
	}
	if s.engines.MaxModelLen() == 0 {
		return nil, failure(fmt.Errorf("%w: none has joined", dispatch.ErrNoEngine))
	}
	o := &order{common: r, lora: lora, arrived: c.arrived}
	if o.rank.Value, o.rank.Set, err = c.rank(); err != nil {
		return nil, err
	}
	o.head = openai.Head{
		ID: c.id(prefix, r.RequestID), Model: model, Fingerprint: s.fingerprint, Created: c.arrived.Unix(),
	}
	return o, nil
}

// add adds a prompt, with as many choices as are wanted. suffix tells its id from the other prompts' of the request.
func (o *order) add(s *Server, prompt []uint32, w *wanted, maxTokens int, suffix string) error {
	args, err := extraArgs(&w.Sampling)
	if err != nil {
		return err
	}
	if err := o.findStops(w.Stop); err != nil {
		return err
	}
	p := w.params(maxTokens, s.tokens.EOS())
	p.ExtraArgs = args
	r := dispatch.Request{
		Request: enginecore.Request{
			PromptTokens: prompt, Sampling: p, LoRA: o.lora, CacheSalt: o.common.CacheSalt,
			Priority: o.common.Priority, ExternalID: o.head.ID + suffix, SessionID: o.common.SessionID,
		},
		Rank: o.rank, Arrived: o.arrived, Choices: w.Count(),
	}
	first := len(o.choices)
	for range w.Count() {
		o.choices = append(o.choices, o.choice(s, prompt, w, p))
	}
	if o.form != nil {
		if err := o.form.impose(s, &r, o.choices[first:]); err != nil {
			return err
		}
	}
	o.requests = append(o.requests, r)
	return nil
}

// findStops prepares the search for stop strings, once.
func (o *order) findStops(list []string) error {
	if o.stops != nil {
		return nil
	}
	stops, err := tokenizer.NewStops(list)
	if err != nil {
		return openai.BadRequest("stop", "%v", err)
	}
	o.stops = stops
	return nil
}

func (o *order) choice(s *Server, prompt []uint32, w *wanted, p *enginecore.SamplingParams) *choice {
	c := &choice{
		names:     names{s.tokens, o.common.TokensAsIDs},
		prompt:    prompt,
		keepsStop: w.IncludeStop,
		tellsIDs:  o.common.ReturnTokenIDs,
		text: s.tokens.NewDetokenizer(tokenizer.DetokenizerOptions{
			Stops: o.stops, IncludeStop: w.IncludeStop, MinTokens: uint64(p.MinTokens), SkipSpecial: w.skipsSpecial(),
		}),
	}
	c.Index = len(o.choices)
	return c
}

// submit gives the order to the engines.
func (o *order) submit(s *Server, c *call) (*job, error) {
	j, err := s.submit(c, o.requests, o.choices)
	if err != nil {
		return nil, err
	}
	j.head = o.head
	return j, nil
}
