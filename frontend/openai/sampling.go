package openai

import (
	"math"
	"strconv"

	"github.com/goccy/go-json"
)

// Sampling are the fields that say how tokens are chosen and when an answer ends, common to all routes that generate. nil
// means vLLM's default. Floats are finite.
type Sampling struct {
	N                 *int64                  `json:"n"` // 1 to MaxSequences; nil = 1
	Temperature       *float64                `json:"temperature"`
	TopP              *float64                `json:"top_p"`
	TopK              *int64                  `json:"top_k"`
	MinP              *float64                `json:"min_p"`
	PresencePenalty   *float64                `json:"presence_penalty"`
	FrequencyPenalty  *float64                `json:"frequency_penalty"`
	RepetitionPenalty *float64                `json:"repetition_penalty"`
	Seed              *int64                  `json:"seed"`
	Stop              Strings                 `json:"stop"`
	StopTokenIDs      []uint32                `json:"stop_token_ids"`
	IncludeStop       bool                    `json:"include_stop_str_in_output"`
	IgnoreEOS         bool                    `json:"ignore_eos"`
	MinTokens         *int64                  `json:"min_tokens"`
	PromptLogprobs    *int64                  `json:"prompt_logprobs"` // -1 = the whole vocabulary
	SkipSpecialTokens *bool                   `json:"skip_special_tokens"`
	SpaceSpecials     *bool                   `json:"spaces_between_special_tokens"`
	TruncatePrompt    *int64                  `json:"truncate_prompt_tokens"` // keep the last; -1 = as many as fit
	AllowedTokenIDs   []uint32                `json:"allowed_token_ids"`
	BadWords          []string                `json:"bad_words"`
	LogitBias         map[string]*json.Number `json:"logit_bias"`
	ExtraArgs         json.RawMessage         `json:"vllm_xargs"`
	KVTransfer        json.RawMessage         `json:"kv_transfer_params"`
}

// Count is the number of answers to each prompt.
func (s *Sampling) Count() int {
	if s.N == nil {
		return 1
	}
	return int(*s.N)
}

// check looks at everything but the numbers of tokens, which depend on the prompt.
func (s *Sampling) check(l Limits) error {
	if err := s.checkNumbers(); err != nil {
		return err
	}
	if err := s.checkLists(l); err != nil {
		return err
	}
	for _, each := range []struct {
		name string
		raw  json.RawMessage
	}{{"vllm_xargs", s.ExtraArgs}, {"kv_transfer_params", s.KVTransfer}} {
		if err := checkObject(each.name, each.raw); err != nil {
			return err
		}
	}
	return checkLogprobs("prompt_logprobs", s.PromptLogprobs, l)
}

func (s *Sampling) checkNumbers() error {
	if n := s.N; n != nil && (*n < 1 || *n > MaxSequences) {
		return BadRequest("n", "n must be at least 1 and at most %d, got %d.", MaxSequences, *n)
	}
	for _, each := range []struct {
		name   string
		value  *float64
		ok     func(float64) bool
		should string
	}{
		{"presence_penalty", s.PresencePenalty, within(-2, 2), "be in [-2, 2]"},
		{"frequency_penalty", s.FrequencyPenalty, within(-2, 2), "be in [-2, 2]"},
		{"repetition_penalty", s.RepetitionPenalty, func(v float64) bool { return v > 0 }, "be greater than zero"},
		{"temperature", s.Temperature, within(0, math.MaxFloat64), "be non-negative"},
		{"top_p", s.TopP, func(v float64) bool { return v > 0 && v <= 1 }, "be in (0, 1]"},
		{"min_p", s.MinP, within(0, 1), "be in [0, 1]"},
	} {
		if each.value != nil && !each.ok(*each.value) {
			return BadRequest(each.name, "%s must %s, got %s.", each.name, each.should, number(*each.value))
		}
	}
	if k := s.TopK; k != nil && *k < -1 {
		return BadRequest("top_k", "top_k must be 0 or -1 (off) or at least 1, got %d.", *k)
	}
	if m := s.MinTokens; m != nil && *m < 0 {
		return BadRequest("min_tokens", "min_tokens must be greater than or equal to 0, got %d.", *m)
	}
	if t := s.TruncatePrompt; t != nil && *t < -1 {
		return BadRequest("truncate_prompt_tokens", "truncate_prompt_tokens must be at least -1, got %d.", *t)
	}
	return nil
}

func (s *Sampling) checkLists(l Limits) error {
	for _, each := range []struct {
		name string
		n    int
	}{{"stop", len(s.Stop)}, {"stop_token_ids", len(s.StopTokenIDs)}, {"bad_words", len(s.BadWords)}, {"logit_bias", len(s.LogitBias)}} {
		if each.n > maxStops {
			return BadRequest(each.name, "%s has %d entries, want at most %d.", each.name, each.n, maxStops)
		}
	}
	for _, stop := range s.Stop {
		if stop == "" {
			return BadRequest("stop", "stop cannot contain an empty string.")
		}
	}
	if s.AllowedTokenIDs != nil && len(s.AllowedTokenIDs) == 0 {
		return BadRequest("allowed_token_ids", "allowed_token_ids must not be empty.")
	}
	if err := checkIDs("allowed_token_ids", s.AllowedTokenIDs, l); err != nil {
		return err
	}
	return s.checkBias(l)
}

func (s *Sampling) checkBias(l Limits) error {
	for key, bias := range s.LogitBias {
		if id, err := strconv.ParseUint(key, 10, 32); err != nil || l.Vocabulary > 0 && id >= uint64(l.Vocabulary) {
			return BadRequest("logit_bias", "logit_bias: %q is not a token id below the vocabulary's size of %d.", shorten(key), l.Vocabulary)
		}
		if bias == nil {
			return BadRequest("logit_bias", "logit_bias: the bias of token %s is null, want a number.", key)
		}
		if _, err := bias.Float64(); err != nil {
			return BadRequest("logit_bias", "logit_bias: %q is not a number.", shorten(bias.String()))
		}
	}
	return nil
}

// checkIDs refuses token ids that the model does not have.
func checkIDs(param string, ids []uint32, l Limits) error {
	for _, id := range ids {
		if l.Vocabulary > 0 && uint64(id) >= uint64(l.Vocabulary) {
			return BadRequest(param, "%s: token id %d is out of vocabulary, want below %d.", param, id, l.Vocabulary)
		}
	}
	return nil
}

// checkLogprobs looks at a number of alternatives.
func checkLogprobs(param string, n *int64, l Limits) error {
	switch {
	case n == nil:
		return nil
	case *n < -1:
		return BadRequest(param, "%s must be non-negative or -1, got %d.", param, *n)
	case l.MaxLogprobs >= 0 && *n == -1:
		return BadRequest(param, "%s of -1 asks for the whole vocabulary, which is more than the %d that are allowed.", param, l.MaxLogprobs)
	case l.MaxLogprobs >= 0 && *n > int64(l.MaxLogprobs):
		return BadRequest(param, "%s of %d is more than the %d that are allowed.", param, *n, l.MaxLogprobs)
	}
	return nil
}

// checkObject takes an object, null or nothing.
func checkObject(param string, raw json.RawMessage) error {
	if isNull(raw) || raw[0] == '{' {
		return nil
	}
	return BadRequest(param, "%s is %s, want an object.", param, describe(raw))
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || raw[0] == 'n' }

func within(low, high float64) func(float64) bool {
	return func(v float64) bool { return v >= low && v <= high }
}

func number(v float64) string { return string(AppendFloat(nil, v)) }
