package worker

import (
	"fmt"
	"slices"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/worker/engine"
	"vllm-vcr/worker/logprobs"
	"vllm-vcr/worker/tokens"
)

// caller is what the outputs have to know of a request, beyond what the engine knows.
type caller struct {
	id      enginecore.EncodedID
	scores  *scores               // nil = no log probabilities wanted
	stop    enginecore.StopReason // told where the request ends with Stop
	adapter uint64                // id of the LoRA adapter, 0 = none
	pooled  uint64                // seed of the answer to a pooling request
	pooling bool
	fault   string // what is wrong with an argument, "" = nothing

	// What the journal tells of it.
	external string      // id by which the client knows it, "" = not told
	number   uint64      // of its arrival
	first    engine.Time // when its first token was handed over, 0 = not yet
}

// scores are the log probabilities that a request wants.
type scores struct {
	model     logprobs.Model
	output    int  // most likely tokens to tell for each token, or logprobs.All
	hasOutput bool // whether any are wanted
	prompt    int  // the same for the prompt's tokens
	hasPrompt bool
	tokens    []uint32 // of the prompt, where hasPrompt
}

// newRequest makes of what a frontend sent what the engine needs.
func (r *reader) newRequest(in *enginecore.Request, own *engine.Own, scores *scores) *engine.Request {
	c := &caller{id: enginecore.EncodeID(in.ID), external: in.ExternalID, scores: scores}
	req := &engine.Request{
		ID:           in.ID,
		Client:       in.ClientIndex,
		PromptTokens: uint64(len(in.PromptTokens)),
		Priority:     in.Priority,
		ArrivalTime:  in.ArrivalTime,
		Pooling:      in.Sampling == nil,
		AbortAtOnce:  in.AbortImmediately,
		MaxHeld:      scores.maxHeld(),
		Own:          own,
		Caller:       c,
	}
	if in.LoRA != nil {
		req.Adapter, c.adapter = in.LoRA.Name, in.LoRA.ID
	}
	if r.echoes {
		req.Prompt = slices.Clone(in.PromptTokens)
	}
	if in.Sampling == nil {
		c.pooling, c.pooled = true, hashTokens(in.PromptTokens)
		return req
	}
	r.sample(req, c, in.Sampling)
	return req
}

// sample takes over what sampling parameters say of the answer's tokens and of its end.
func (r *reader) sample(req *engine.Request, c *caller, s *enginecore.SamplingParams) {
	req.MaxTokens = uint64(s.MaxTokens)
	req.Forced = slices.Clone(s.TraceDecodeTokenIDs)
	if stops := stopTokens(s); len(stops) > 0 {
		req.Avoid = tokens.NewAvoid(stops, r.vocabulary)
	}
	for i, token := range req.Forced {
		if uint32(i)+1 < s.MinTokens {
			continue
		}
		if reason, stops := stopsAt(s, token); stops {
			req.StopAfter, c.stop = uint64(i)+1, reason
			return
		}
	}
}

// stopsAt says whether an answer ends at a token. The end of a sequence is no reason that is told; any other is.
func stopsAt(s *enginecore.SamplingParams, token uint32) (enginecore.StopReason, bool) {
	if s.EOSTokenID == enginecore.Some(token) && !s.IgnoreEOS {
		return enginecore.StopReason{}, true
	}
	return enginecore.StopReason{Token: enginecore.Some(int64(token))}, slices.Contains(s.StopTokenIDs, token)
}

// stopTokens lists the tokens at which a request would end, some of them more than once.
func stopTokens(s *enginecore.SamplingParams) []uint32 {
	list := slices.Concat(s.StopTokenIDs, s.AllStopTokenIDs)
	if s.EOSTokenID.Set {
		list = append(list, s.EOSTokenID.Value)
	}
	return list
}

// scores are those that a request wants, nil = none.
func (r *reader) scores(in *enginecore.Request) *scores {
	s := in.Sampling
	if s == nil || !s.Logprobs.Set && !s.PromptLogprobs.Set {
		return nil
	}
	sc := &scores{
		model:  logprobs.Model{Seed: hashText(in.ID), Vocabulary: r.vocabulary, Greedy: s.Temperature == 0},
		output: top(s.Logprobs), hasOutput: s.Logprobs.Set,
		prompt: top(s.PromptLogprobs), hasPrompt: s.PromptLogprobs.Set,
	}
	if sc.hasPrompt {
		sc.tokens = slices.Clone(in.PromptTokens)
	}
	return sc
}

// maxScored bounds the log probabilities of one output, in bytes: they are made up between two steps, and a client takes them in one
// message.
const maxScored = 64 << 20

// check wants no more of one output than fits.
func (s *scores) check(chunk uint64) error {
	switch {
	case s == nil:
		return nil
	case s.hasPrompt && uint64(len(s.tokens)) > s.fit(s.prompt):
		return tooMany("prompt_logprobs", uint64(len(s.tokens)), s.model.Width(s.prompt))
	case s.hasOutput && chunk > s.fit(s.output):
		return tooMany("logprobs", chunk, s.model.Width(s.output))
	default:
		return nil
	}
}

func tooMany(name string, tokens uint64, width int) error {
	return fmt.Errorf("%s: %d tokens with %d log probabilities each, want at most %d MiB of them in one output", name, tokens, width, maxScored>>20)
}

// fit is how many tokens with top alternatives each one output has room for.
func (s *scores) fit(top int) uint64 {
	const id, logprob, rank = 4, 4, 4 // bytes
	return maxScored / (uint64(s.model.Width(top))*(id+logprob) + rank)
}

// maxHeld is what [engine.Request] calls so.
func (s *scores) maxHeld() uint64 {
	if s == nil || !s.hasOutput {
		return 0
	}
	return s.fit(s.output)
}

// top reads a number of alternatives; less than none stands for all.
func top(n enginecore.Optional[int64]) int {
	if n.Value < 0 {
		return logprobs.All
	}
	return int(min(n.Value, 1<<31-1))
}

const fnvOffset, fnvPrime = 0xcbf29ce484222325, 0x100000001b3 // FNV-1a, 64 bits

func hashText(s string) uint64 {
	h := uint64(fnvOffset)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

func hashTokens(tokens []uint32) uint64 {
	h := uint64(fnvOffset)
	for _, t := range tokens {
		h = (h ^ uint64(t)) * fnvPrime
	}
	return h
}
