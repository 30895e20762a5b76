package enginecore

import (
	"fmt"

	"github.com/tinylib/msgp/msgp"
)

// Positions in an EngineCoreRequest. The first six have no default and must be there; the last two exist from 0.33 on.
const (
	addID = iota
	addPromptTokens
	addMMFeatures
	addSampling
	addPooling
	addArrivalTime
	addLoRA
	addCacheSalt
	addDataParallelRank
	addPromptEmbeds
	addPromptIsTokens
	addClientIndex
	addCurrentWave
	addPriority
	addTraceHeaders
	addResumable
	addExternalID
	addReasoningEnded
	addReasoningParser
	addAbortImmediately
	addSessionID
	addKVHints

	addRequired = addArrivalTime + 1
)

var addNames = []string{
	"request_id", "prompt_token_ids", "mm_features", "sampling_params", "pooling_params", "arrival_time", "lora_request",
	"cache_salt", "data_parallel_rank", "prompt_embeds", "prompt_is_token_ids", "client_index", "current_wave", "priority",
	"trace_headers", "resumable", "external_req_id", "reasoning_ended", "reasoning_parser_kwargs", "abort_immediately",
	"session_id", "kv_hints",
}

// Request is vLLM's EngineCoreRequest, the payload of an ADD.
type Request struct {
	ID               string
	PromptTokens     []uint32         // nil for a prompt of embeddings only
	MMFeatures       msgp.Raw         // opaque, as all Raw here; nil = none
	Sampling         *SamplingParams  // nil for a pooling request
	Pooling          msgp.Raw         // nil for a request that generates
	ArrivalTime      float64          // seconds since 1970 by the frontend's clock
	LoRA             *LoRARequest     // nil = the base model
	CacheSalt        string           // "" = none
	DataParallelRank Optional[uint32] // the rank the client asked for
	PromptEmbeds     msgp.Raw
	PromptIsTokens   msgp.Raw
	ClientIndex      uint32 // the output socket that the answers belong to
	CurrentWave      uint64
	Priority         int64 // lower runs first
	TraceHeaders     msgp.Raw
	Resumable        bool
	ExternalID       string // the id the client knows; "" = none
	ReasoningEnded   Optional[bool]
	ReasoningParser  msgp.Raw
	AbortImmediately bool     // a clean-up marker: not to be run
	SessionID        string   // from 0.33 on; "" = none
	KVHints          msgp.Raw // from 0.33 on
}

// DecodeRequest reads an ADD's payload into r, overwriting all of it and reusing its memory. It takes any length from the six
// required elements upwards. On an error r.ID is set if it could be read, so that the caller can answer; the rest of r is undefined.
func DecodeRequest(b []byte, r *Request) error {
	*r = Request{PromptTokens: r.PromptTokens, Sampling: r.Sampling}
	tokens, sampling := r.PromptTokens, r.Sampling
	r.PromptTokens, r.Sampling = nil, nil
	d := decoder{b: b}
	n := d.array(addNames, func(i int) {
		switch i {
		case addPromptTokens:
			r.PromptTokens = d.uint32s(tokens, MaxPromptTokens)
		case addSampling:
			r.Sampling = d.sampling(sampling)
		default:
			d.addElement(r, i)
		}
	})
	if d.err == nil && n < addRequired {
		d.fail("%d elements, want at least %d", n, addRequired)
	}
	if d.err != nil && r.ID != "" {
		return fmt.Errorf("add request %.64q: %w", r.ID, d.err)
	}
	return d.end("add request")
}

func (d *decoder) addElement(r *Request, i int) {
	switch i {
	case addID:
		r.ID = d.requestID()
	case addMMFeatures:
		r.MMFeatures = d.raw()
	case addPooling:
		r.Pooling = d.raw()
	case addArrivalTime:
		r.ArrivalTime = d.float()
	case addLoRA:
		r.LoRA = d.lora()
	case addCacheSalt:
		r.CacheSalt = d.string()
	case addDataParallelRank:
		r.DataParallelRank = d.optionalUint32()
	case addPromptEmbeds:
		r.PromptEmbeds = d.raw()
	case addPromptIsTokens:
		r.PromptIsTokens = d.raw()
	case addClientIndex:
		r.ClientIndex = d.uint32()
	case addCurrentWave:
		r.CurrentWave = d.uint()
	default:
		d.addLateElement(r, i)
	}
}

func (d *decoder) addLateElement(r *Request, i int) {
	switch i {
	case addPriority:
		r.Priority = d.int()
	case addTraceHeaders:
		r.TraceHeaders = d.raw()
	case addResumable:
		r.Resumable = d.bool()
	case addExternalID:
		r.ExternalID = d.string()
	case addReasoningEnded:
		r.ReasoningEnded = d.optionalBool()
	case addReasoningParser:
		r.ReasoningParser = d.raw()
	case addAbortImmediately:
		r.AbortImmediately = d.bool()
	case addSessionID:
		r.SessionID = d.string()
	case addKVHints:
		r.KVHints = d.raw()
	default: // elements of later lines
		d.skip()
	}
}

// requestID reads an id, which unlike other strings may not be nil.
func (d *decoder) requestID() string {
	if d.err == nil && msgp.IsNil(d.b) {
		d.fail("nil, want a string")
	}
	return d.string()
}

// AppendRequest appends an ADD's payload as the Python frontend of line v writes it: never trimmed.
func AppendRequest(b []byte, v Version, r *Request) []byte {
	b = msgp.AppendArrayHeader(b, uint32(v.requestLen()))
	b = msgp.AppendString(b, r.ID)
	b = appendTokens(b, r.PromptTokens)
	b = appendRaw(b, r.MMFeatures)
	b = appendSampling(b, v, r.Sampling)
	b = appendRaw(b, r.Pooling)
	b = msgp.AppendFloat64(b, r.ArrivalTime)
	b = appendLoRA(b, v, r.LoRA)
	b = appendText(b, r.CacheSalt)
	b = appendOptionalUint32(b, r.DataParallelRank)
	b = appendRaw(b, r.PromptEmbeds)
	b = appendRaw(b, r.PromptIsTokens)
	b = msgp.AppendUint32(b, r.ClientIndex)
	b = msgp.AppendUint64(b, r.CurrentWave)
	b = appendInt(b, r.Priority)
	b = appendRaw(b, r.TraceHeaders)
	b = msgp.AppendBool(b, r.Resumable)
	b = appendText(b, r.ExternalID)
	b = appendOptionalBool(b, r.ReasoningEnded)
	b = appendRaw(b, r.ReasoningParser)
	b = msgp.AppendBool(b, r.AbortImmediately)
	if v.requestLen() > addSessionID {
		b = appendText(b, r.SessionID)
		b = appendRaw(b, r.KVHints)
	}
	return b
}
