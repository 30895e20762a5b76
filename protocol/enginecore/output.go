package enginecore

import "github.com/tinylib/msgp/msgp"

// Slots of an EngineCoreOutput. From 0.26 on a slot is a position; 0.25 lacks slotECTransfer, so that all behind it move up by one.
// Slots from slotMMCacheMisses on exist from 0.33 on.
const (
	slotID = iota
	slotTokens
	slotLogprobs
	slotPromptLogprobs
	slotPooling
	slotFinish
	slotStopReason
	slotEvents
	slotKVTransfer
	slotECTransfer
	slotTraceHeaders
	slotPrefill
	slotRoutedExperts
	slotNaNLogits
	slotMMCacheMisses
	slotSamplingMask
	slotSpecDecode
	slotPromptTokenLogprobs
	slotError
)

var slotNames = [...]string{
	"request_id", "new_token_ids", "new_logprobs", "new_prompt_logprobs_tensors", "pooling_output", "finish_reason", "stop_reason",
	"events", "kv_transfer_params", "ec_transfer_params", "trace_headers", "prefill_stats", "routed_experts", "num_nans_in_logits",
	"mm_cache_miss_hashes", "new_sampling_mask", "spec_decode_metrics", "prompt_token_id_logprobs", "error",
}

// Output is what one step says about one request: vLLM's EngineCoreOutput without the id. Fields that a line doesn't have are not
// sent on it.
type Output struct {
	Tokens              []uint32
	Logprobs            *Logprobs
	PromptLogprobs      *Logprobs
	Pooling             *Tensor
	Finish              FinishReason
	StopReason          StopReason
	Events              []Event
	KVTransfer          msgp.Raw // map; nil = none
	ECTransfer          msgp.Raw // map, from 0.26 on; nil = none
	TraceHeaders        msgp.Raw // map; nil = none
	Prefill             *PrefillStats
	RoutedExperts       *Tensor
	NaNLogits           uint64
	MMCacheMisses       []string             // from 0.33 on, as all below; nil = none
	SamplingMask        msgp.Raw             // array [token_ids, offsets, cu]; nil = none
	SpecDecode          *SpecDecodingMetrics // of the whole request, with its last output
	PromptTokenLogprobs *Tensor
	Error               *RequestError // with FinishError
}

// FinishReason says why a request ended. The zero value means that it goes on, and is nil on the wire; the others are their value
// less one.
type FinishReason uint8

// The finish reasons.
const (
	FinishNone FinishReason = iota
	FinishStop
	FinishLength
	FinishAbort
	FinishError
	FinishRepetition
)

var finishNames = [...]string{"none", "stop", "length", "abort", "error", "repetition"}

// String is vLLM's name of the reason.
func (f FinishReason) String() string {
	if int(f) >= len(finishNames) {
		return "unknown"
	}
	return finishNames[f]
}

// StopReason is what a request stopped at: a token, a string or, in the zero value, nothing to tell.
type StopReason struct {
	Token Optional[int64]
	Text  string // where Token is not set
}

// EventType is a step in the life of a request.
type EventType uint8

// The event types.
const (
	EventQueued EventType = iota + 1
	EventScheduled
	EventPreempted
)

// Event is one step in the life of a request. Time is in seconds by the clock of the message's timestamp.
type Event struct {
	Type EventType
	Time float64
}

// PrefillStats goes with the first output of a request; all counts are prompt tokens. Computed, local and external add up to
// prompt, local and external to cached.
type PrefillStats struct {
	Prompt, Computed, Cached, LocalCached, ExternalCached uint64
	CacheCreation                                         uint64 // from 0.26 on
}

// SpecDecodingMetrics is one request's speculative decoding.
type SpecDecodingMetrics struct {
	SpecTokens  uint64
	Histogram   []uint64 // drafts by number of accepted tokens, SpecTokens+1 of them
	DraftTokens uint64
	Accepted    []uint64 // by step
	Drafted     []uint64 // by step
}

// RequestError says why a request failed. The frontend answers "validation_error" as the client's fault.
type RequestError struct {
	Code      string
	Message   string
	Retryable bool
}

// EncodedID is a request id in msgpack, made once for each request by [EncodeID].
type EncodedID []byte

// EncodeID encodes a request id.
func EncodeID(id string) EncodedID { return msgp.AppendString(nil, id) }
