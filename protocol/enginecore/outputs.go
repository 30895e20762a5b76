package enginecore

import "github.com/tinylib/msgp/msgp"

// Outputs is an EngineCoreOutputs as a frontend receives it. Decoding reuses its memory: all that it holds is valid until the next
// message is decoded into it, and as long as the decoded bytes are.
type Outputs struct {
	// Version is the line that the engine speaks, to be set before decoding. Only 0.25 has a layout that can't be told by itself.
	Version Version

	EngineIndex   uint32
	Requests      []RequestOutput
	Stats         *SchedulerStats // nil = none
	Timestamp     float64         // seconds by the engine's monotonic clock; 0 = not told
	Utility       *UtilityResult  // nil = none
	Finished      []string        // ids of requests that are done with
	WaveComplete  Optional[uint64]
	StartWave     Optional[uint64]
	WeightVersion string // from 0.33 on; "" = not told

	stats SchedulerStats
}

// RequestOutput is an Output with the id of its request.
type RequestOutput struct {
	ID []byte // aliases the message
	Output
}

// UtilityResult is the answer to a [UtilityCall].
type UtilityResult struct {
	CallID  CallID
	Failure Optional[string] // set where the call failed
	Value   msgp.Raw         // nil for methods without a result
}

var outputsNames = []string{
	"engine_index", "outputs", "scheduler_stats", "timestamp", "utility_output", "finished_requests", "wave_complete", "start_wave",
	"weight_version",
}

// DecodeOutputs reads an EngineCoreOutputs into o. The sentinel [EngineCoreDead] is no such message: compare with it first. On an error
// o is undefined.
func DecodeOutputs(b []byte, o *Outputs) error {
	*o = Outputs{Version: o.Version, Requests: o.Requests[:0]}
	d := decoder{b: b}
	d.array(outputsNames, func(i int) {
		switch i {
		case outputsEngineIndex:
			o.EngineIndex = d.uint32()
		case outputsRequests:
			d.requestOutputs(o)
		case outputsStats:
			if !d.null() {
				o.Stats = &o.stats
				d.stats(o.Stats)
			}
		case outputsTimestamp:
			o.Timestamp = d.float()
		case outputsUtility:
			o.Utility = d.utilityResult()
		case outputsFinished:
			o.Finished = d.strings()
		default:
			d.lateOutputsElement(o, i)
		}
	})
	return d.end("outputs")
}

func (d *decoder) lateOutputsElement(o *Outputs, i int) {
	switch i {
	case outputsWaveComplete:
		o.WaveComplete = d.optionalUint()
	case outputsStartWave:
		o.StartWave = d.optionalUint()
	case outputsWeightVersion:
		o.WeightVersion = d.string()
	default: // elements of later lines
		d.skip()
	}
}

func (d *decoder) requestOutputs(o *Outputs) {
	n := d.arrayLen(MaxOutputs)
	for i := 0; i < n && d.err == nil; i++ {
		if i < cap(o.Requests) {
			o.Requests = o.Requests[:i+1]
		} else {
			o.Requests = append(o.Requests, RequestOutput{})
		}
		d.requestOutput(&o.Requests[i], o.Version)
		d.at(i)
	}
}

func (d *decoder) requestOutput(r *RequestOutput, v Version) {
	tokens, events := r.Tokens, r.Events[:0]
	*r = RequestOutput{}
	r.Events = events
	n := d.arrayLen(MaxItems)
	for i := 0; i < n && d.err == nil; i++ {
		slot := v.outputSlot(i)
		switch slot {
		case slotID:
			r.ID = d.text()
		case slotTokens:
			r.Tokens = d.uint32s(tokens, MaxPromptTokens)
		default:
			d.outputSlot(&r.Output, slot)
		}
		if d.err != nil && slot < len(slotNames) {
			d.within(slotNames[slot])
		}
	}
	if d.err == nil && n < 2 {
		d.fail("%d elements, want at least 2", n)
	}
}

func (d *decoder) outputSlot(o *Output, slot int) {
	switch slot {
	case slotLogprobs:
		o.Logprobs = d.logprobs()
	case slotPromptLogprobs:
		o.PromptLogprobs = d.logprobs()
	case slotPooling:
		o.Pooling = d.tensor()
	case slotFinish:
		o.Finish = d.finishReason()
	case slotStopReason:
		o.StopReason = d.stopReason()
	case slotEvents:
		o.Events = d.events(o.Events)
	case slotKVTransfer:
		o.KVTransfer = d.raw()
	case slotECTransfer:
		o.ECTransfer = d.raw()
	case slotTraceHeaders:
		o.TraceHeaders = d.raw()
	default:
		d.lateOutputSlot(o, slot)
	}
}

func (d *decoder) lateOutputSlot(o *Output, slot int) {
	switch slot {
	case slotPrefill:
		o.Prefill = d.prefill()
	case slotRoutedExperts:
		o.RoutedExperts = d.tensor()
	case slotNaNLogits:
		o.NaNLogits = d.uint()
	case slotMMCacheMisses:
		o.MMCacheMisses = d.strings()
	case slotSamplingMask:
		o.SamplingMask = d.raw()
	case slotSpecDecode:
		o.SpecDecode = d.specDecodingMetrics()
	case slotPromptTokenLogprobs:
		o.PromptTokenLogprobs = d.tensor()
	case slotError:
		o.Error = d.requestError()
	default: // slots of later lines
		d.skip()
	}
}
