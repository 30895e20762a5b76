package enginecore

import "github.com/tinylib/msgp/msgp"

// samplingKeys describes every known key, each at the index of its bit in [SamplingKeys], and so in the order of writing.
var samplingKeys = [...]samplingKey{
	uint32Key("n", 1, func(s *SamplingParams) *uint32 { return &s.N }),
	floatKey("presence_penalty", 0, func(s *SamplingParams) *float64 { return &s.PresencePenalty }),
	floatKey("frequency_penalty", 0, func(s *SamplingParams) *float64 { return &s.FrequencyPenalty }),
	floatKey("repetition_penalty", 1, func(s *SamplingParams) *float64 { return &s.RepetitionPenalty }),
	floatKey("temperature", 1, func(s *SamplingParams) *float64 { return &s.Temperature }),
	optionalBoolKey("watermarking", func(s *SamplingParams) *Optional[bool] { return &s.Watermarking }),
	floatKey("top_p", 1, func(s *SamplingParams) *float64 { return &s.TopP }),
	intKey("top_k", func(s *SamplingParams) *int64 { return &s.TopK }),
	floatKey("min_p", 0, func(s *SamplingParams) *float64 { return &s.MinP }),
	optionalIntKey("seed", func(s *SamplingParams) *Optional[int64] { return &s.Seed }),
	stringsKey("stop", func(s *SamplingParams) *[]string { return &s.Stop }),
	tokensKey("stop_token_ids", func(s *SamplingParams) *[]uint32 { return &s.StopTokenIDs }),
	boolKey("ignore_eos", false, func(s *SamplingParams) *bool { return &s.IgnoreEOS }),
	maxTokensKey(),
	uint32Key("min_tokens", 0, func(s *SamplingParams) *uint32 { return &s.MinTokens }),
	optionalIntKey("logprobs", func(s *SamplingParams) *Optional[int64] { return &s.Logprobs }),
	optionalIntKey("prompt_logprobs", func(s *SamplingParams) *Optional[int64] { return &s.PromptLogprobs }),
	opaqueKey("prompt_logprob_token_ids", func(s *SamplingParams) *msgp.Raw { return &s.PromptLogprobTokenIDs }),
	optionalUintKey("prompt_logprob_start", func(s *SamplingParams) *Optional[uint64] { return &s.PromptLogprobStart }),
	tokensKey("logprob_token_ids", func(s *SamplingParams) *[]uint32 { return &s.LogprobTokenIDs }),
	boolKey("flat_logprobs", false, func(s *SamplingParams) *bool { return &s.FlatLogprobs }),
	boolKey("detokenize", true, func(s *SamplingParams) *bool { return &s.Detokenize }),
	boolKey("skip_special_tokens", true, func(s *SamplingParams) *bool { return &s.SkipSpecialTokens }),
	boolKey("spaces_between_special_tokens", true, func(s *SamplingParams) *bool { return &s.SpacesBetweenSpecialTokens }),
	boolKey("include_stop_str_in_output", false, func(s *SamplingParams) *bool { return &s.IncludeStopString }),
	uintKey("output_kind", func(s *SamplingParams) *uint64 { return (*uint64)(&s.OutputKind) }),
	optionalUintKey("stream_interval", func(s *SamplingParams) *Optional[uint64] { return &s.StreamInterval }),
	boolKey("skip_clone", false, func(s *SamplingParams) *bool { return &s.SkipClone }),
	uintKey("output_text_buffer_length", func(s *SamplingParams) *uint64 { return &s.OutputTextBufferLength }),
	optionalUint32Key("_eos_token_id", func(s *SamplingParams) *Optional[uint32] { return &s.EOSTokenID }),
	tokensKey("_all_stop_token_ids", func(s *SamplingParams) *[]uint32 { return &s.AllStopTokenIDs }),
	opaqueKey("structured_outputs", func(s *SamplingParams) *msgp.Raw { return &s.StructuredOutputs }),
	opaqueKey("logit_bias", func(s *SamplingParams) *msgp.Raw { return &s.LogitBias }),
	tokensKey("allowed_token_ids", func(s *SamplingParams) *[]uint32 { return &s.AllowedTokenIDs }),
	opaqueKey("extra_args", func(s *SamplingParams) *msgp.Raw { return &s.ExtraArgs }),
	stringsKey("bad_words", func(s *SamplingParams) *[]string { return &s.BadWords }),
	opaqueKey("_bad_words_token_ids", func(s *SamplingParams) *msgp.Raw { return &s.BadWordsTokenIDs }),
	optionalBoolKey("skip_reading_prefix_cache", func(s *SamplingParams) *Optional[bool] { return &s.SkipReadingPrefixCache }),
	optionalIntKey("thinking_token_budget", func(s *SamplingParams) *Optional[int64] { return &s.ThinkingTokenBudget }),
	repetitionKey(),
	uintKey("routed_experts_prompt_start", func(s *SamplingParams) *uint64 { return &s.RoutedExpertsPromptStart }),
	tokensKey("trace_decode_token_ids", func(s *SamplingParams) *[]uint32 { return &s.TraceDecodeTokenIDs }),
}

// samplingIndex finds a key's description by its name.
var samplingIndex = func() map[string]int {
	index := make(map[string]int, len(samplingKeys))
	for i := range samplingKeys {
		index[samplingKeys[i].name] = i
	}
	return index
}()
