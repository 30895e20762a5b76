package enginecore

import "github.com/tinylib/msgp/msgp"

// appendOutput writes one output of line v, trimmed after its last slot that says something.
func appendOutput(b []byte, v Version, id EncodedID, o *Output) []byte {
	last := o.lastSlot(v)
	b = msgp.AppendArrayHeader(b, uint32(v.outputIndex(last)+1))
	b = append(b, id...)
	b = msgp.AppendArrayHeader(b, uint32(len(o.Tokens)))
	for _, t := range o.Tokens {
		b = msgp.AppendUint32(b, t)
	}
	for slot := slotLogprobs; slot <= last; slot++ {
		if slot == slotECTransfer && !v.AtLeast(26) {
			continue
		}
		b = o.appendSlot(b, v, slot)
	}
	return b
}

func (o *Output) lastSlot(v Version) int {
	for slot := v.outputSlots() - 1; slot > slotTokens; slot-- {
		if o.says(slot) && (slot != slotECTransfer || v.AtLeast(26)) {
			return slot
		}
	}
	return slotTokens
}

// says tells whether a slot from slotLogprobs on holds more than its default.
func (o *Output) says(slot int) bool {
	switch slot {
	case slotLogprobs:
		return o.Logprobs != nil
	case slotPromptLogprobs:
		return o.PromptLogprobs != nil
	case slotPooling:
		return o.Pooling != nil
	case slotFinish:
		return o.Finish != FinishNone
	case slotStopReason:
		return o.StopReason != StopReason{}
	case slotEvents:
		return len(o.Events) > 0
	case slotKVTransfer:
		return len(o.KVTransfer) > 0
	case slotECTransfer:
		return len(o.ECTransfer) > 0
	case slotTraceHeaders:
		return len(o.TraceHeaders) > 0
	default:
		return o.saysLate(slot)
	}
}

func (o *Output) saysLate(slot int) bool {
	switch slot {
	case slotPrefill:
		return o.Prefill != nil
	case slotRoutedExperts:
		return o.RoutedExperts != nil
	case slotNaNLogits:
		return o.NaNLogits != 0
	case slotMMCacheMisses:
		return o.MMCacheMisses != nil
	case slotSamplingMask:
		return len(o.SamplingMask) > 0
	case slotSpecDecode:
		return o.SpecDecode != nil
	case slotPromptTokenLogprobs:
		return o.PromptTokenLogprobs != nil
	default:
		return o.Error != nil
	}
}

func (o *Output) appendSlot(b []byte, v Version, slot int) []byte {
	switch slot {
	case slotLogprobs:
		return o.Logprobs.append(b, false)
	case slotPromptLogprobs:
		return o.PromptLogprobs.append(b, v.AtLeast(33))
	case slotPooling:
		return o.Pooling.append(b)
	case slotFinish:
		return o.Finish.append(b)
	case slotStopReason:
		return o.StopReason.append(b)
	case slotEvents:
		return appendEvents(b, o.Events)
	case slotKVTransfer:
		return appendRaw(b, o.KVTransfer)
	case slotECTransfer:
		return appendRaw(b, o.ECTransfer)
	case slotTraceHeaders:
		return appendRaw(b, o.TraceHeaders)
	default:
		return o.appendLateSlot(b, v, slot)
	}
}

func (o *Output) appendLateSlot(b []byte, v Version, slot int) []byte {
	switch slot {
	case slotPrefill:
		return o.Prefill.append(b, v)
	case slotRoutedExperts:
		return o.RoutedExperts.append(b)
	case slotNaNLogits:
		return msgp.AppendUint64(b, o.NaNLogits) // the one slot that may not be nil
	case slotMMCacheMisses:
		if o.MMCacheMisses == nil {
			return msgp.AppendNil(b)
		}
		return appendStrings(b, o.MMCacheMisses)
	case slotSamplingMask:
		return appendRaw(b, o.SamplingMask)
	case slotSpecDecode:
		return o.SpecDecode.append(b)
	case slotPromptTokenLogprobs:
		return o.PromptTokenLogprobs.append(b)
	default:
		return o.Error.append(b)
	}
}

func (f FinishReason) append(b []byte) []byte {
	if f == FinishNone {
		return msgp.AppendNil(b)
	}
	return msgp.AppendUint8(b, uint8(f)-1)
}

func (s StopReason) append(b []byte) []byte {
	if s.Token.Set {
		return appendInt(b, s.Token.Value)
	}
	return appendText(b, s.Text)
}

func appendEvents(b []byte, events []Event) []byte {
	if len(events) == 0 {
		return msgp.AppendNil(b)
	}
	b = msgp.AppendArrayHeader(b, uint32(len(events)))
	for _, e := range events {
		b = msgp.AppendMapHeader(b, 2)
		b = appendUintField(b, "type", uint64(e.Type))
		b = msgp.AppendFloat64(msgp.AppendString(b, "timestamp"), e.Time)
	}
	return b
}

func (p *PrefillStats) append(b []byte, v Version) []byte {
	if p == nil {
		return msgp.AppendNil(b)
	}
	n := uint32(5)
	if v.AtLeast(26) {
		n = 6
	}
	b = msgp.AppendMapHeader(b, n)
	b = appendUintField(b, "num_prompt_tokens", p.Prompt)
	b = appendUintField(b, "num_computed_tokens", p.Computed)
	b = appendUintField(b, "num_cached_tokens", p.Cached)
	b = appendUintField(b, "num_local_cached_tokens", p.LocalCached)
	b = appendUintField(b, "num_external_cached_tokens", p.ExternalCached)
	if n > 5 {
		b = appendUintField(b, "num_cache_creation_tokens", p.CacheCreation)
	}
	return b
}

func (m *SpecDecodingMetrics) append(b []byte) []byte {
	if m == nil {
		return msgp.AppendNil(b)
	}
	b = msgp.AppendMapHeader(b, 5)
	b = appendUintField(b, "num_spec_tokens", m.SpecTokens)
	b = appendUints(msgp.AppendString(b, "histogram"), m.Histogram)
	b = appendUintField(b, "num_draft_tokens", m.DraftTokens)
	b = appendUints(msgp.AppendString(b, "per_step_accepted"), m.Accepted)
	return appendUints(msgp.AppendString(b, "per_step_drafted"), m.Drafted)
}

func (e *RequestError) append(b []byte) []byte {
	if e == nil {
		return msgp.AppendNil(b)
	}
	b = msgp.AppendMapHeader(b, 3)
	b = appendStringField(b, "code", e.Code)
	b = appendStringField(b, "message", e.Message)
	return appendBoolField(b, "retryable", e.Retryable)
}
