package enginecore

import (
	"errors"
	"math"

	"github.com/tinylib/msgp/msgp"
)

// Unlimited is the value of MaxTokens where the frontend sent nil: the model's length is the only limit.
const Unlimited uint32 = math.MaxUint32

// SamplingParams is vLLM's map of the same name. A key that is absent on the wire means vLLM's default, as [DefaultSampling] has it.
type SamplingParams struct {
	// Wire is the map as it was received. While it is not nil, [AppendRequest] writes it instead of the fields: set it to nil after
	// changing one.
	Wire msgp.Raw

	// Explicit names the keys that are written even where they hold the default. A decoder sets the ones it saw.
	Explicit SamplingKeys

	N                          uint32 // always 1 in an ADD: the frontend sends a request for each choice
	PresencePenalty            float64
	FrequencyPenalty           float64
	RepetitionPenalty          float64
	Temperature                float64
	Watermarking               Optional[bool] // from 0.33 on
	TopP                       float64
	TopK                       int64
	MinP                       float64
	Seed                       Optional[int64]
	Stop                       []string // for the frontend: the engine never sees text
	StopTokenIDs               []uint32
	IgnoreEOS                  bool
	MaxTokens                  uint32 // Unlimited where nil was sent
	MinTokens                  uint32
	Logprobs                   Optional[int64] // alternatives for each token; -1 = the whole vocabulary
	PromptLogprobs             Optional[int64]
	PromptLogprobTokenIDs      msgp.Raw         // from 0.33 on
	PromptLogprobStart         Optional[uint64] // from 0.33 on
	LogprobTokenIDs            []uint32
	FlatLogprobs               bool
	Detokenize                 bool
	SkipSpecialTokens          bool
	SpacesBetweenSpecialTokens bool
	IncludeStopString          bool
	OutputKind                 OutputKind // for the frontend
	StreamInterval             Optional[uint64]
	SkipClone                  bool
	OutputTextBufferLength     uint64
	EOSTokenID                 Optional[uint32] // set = stop there
	AllStopTokenIDs            []uint32
	StructuredOutputs          msgp.Raw
	LogitBias                  msgp.Raw
	AllowedTokenIDs            []uint32
	ExtraArgs                  msgp.Raw // map; kv_transfer_params are inside
	BadWords                   []string
	BadWordsTokenIDs           msgp.Raw
	SkipReadingPrefixCache     Optional[bool]
	ThinkingTokenBudget        Optional[int64]
	RepetitionDetection        *RepetitionDetection
	RoutedExpertsPromptStart   uint64
	TraceDecodeTokenIDs        []uint32 // from 0.33 on: the tokens to answer with
}

// EachExtraArg calls each for every extra argument until one returns an error. value aliases the message, and is nil for nil.
func (s *SamplingParams) EachExtraArg(each func(name string, value msgp.Raw) error) error {
	d := decoder{b: s.ExtraArgs}
	if len(d.b) == 0 {
		return nil
	}
	var fault error
	d.fields(func(key []byte) {
		value := d.raw()
		if d.err == nil && fault == nil {
			fault = each(string(key), value)
		}
	})
	return errors.Join(fault, d.end("extra arguments"))
}

// OutputKind says which outputs the frontend builds from an engine's: vLLM's RequestOutputKind.
type OutputKind uint64

// The kinds of output.
const (
	OutputCumulative OutputKind = iota
	OutputDelta                 // a stream
	OutputFinalOnly
)

// RepetitionDetection ends a request that repeats itself.
type RepetitionDetection struct{ MaxPatternSize, MinPatternSize, MinCount uint64 }

// DefaultSampling is what an empty map means.
func DefaultSampling() SamplingParams {
	return SamplingParams{
		N: 1, RepetitionPenalty: 1, Temperature: 1, TopP: 1, MaxTokens: 16,
		Detokenize: true, SkipSpecialTokens: true, SpacesBetweenSpecialTokens: true,
	}
}

// SamplingKeys is a set of keys of the map.
type SamplingKeys uint64

// The keys, in the order in which the Python frontend writes them.
const (
	KeyN SamplingKeys = 1 << iota
	KeyPresencePenalty
	KeyFrequencyPenalty
	KeyRepetitionPenalty
	KeyTemperature
	KeyWatermarking
	KeyTopP
	KeyTopK
	KeyMinP
	KeySeed
	KeyStop
	KeyStopTokenIDs
	KeyIgnoreEOS
	KeyMaxTokens
	KeyMinTokens
	KeyLogprobs
	KeyPromptLogprobs
	KeyPromptLogprobTokenIDs
	KeyPromptLogprobStart
	KeyLogprobTokenIDs
	KeyFlatLogprobs
	KeyDetokenize
	KeySkipSpecialTokens
	KeySpacesBetweenSpecialTokens
	KeyIncludeStopString
	KeyOutputKind
	KeyStreamInterval
	KeySkipClone
	KeyOutputTextBufferLength
	KeyEOSTokenID
	KeyAllStopTokenIDs
	KeyStructuredOutputs
	KeyLogitBias
	KeyAllowedTokenIDs
	KeyExtraArgs
	KeyBadWords
	KeyBadWordsTokenIDs
	KeySkipReadingPrefixCache
	KeyThinkingTokenBudget
	KeyRepetitionDetection
	KeyRoutedExpertsPromptStart
	KeyTraceDecodeTokenIDs

	keysEnd
)

// PythonKeys are the keys that the Python frontend's completion and chat routes write whatever they hold.
const PythonKeys = KeyPresencePenalty | KeyFrequencyPenalty | KeyRepetitionPenalty | KeyTemperature | KeyWatermarking | KeyStop |
	KeyStopTokenIDs | KeyBadWords | KeySkipReadingPrefixCache

// keys33 exist from 0.33 on.
const keys33 = KeyWatermarking | KeyPromptLogprobTokenIDs | KeyPromptLogprobStart | KeyTraceDecodeTokenIDs
