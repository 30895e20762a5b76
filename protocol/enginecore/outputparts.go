package enginecore

import "github.com/tinylib/msgp/msgp"

func (d *decoder) finishReason() FinishReason {
	if d.null() {
		return FinishNone
	}
	v := d.uint()
	if last := uint64(FinishRepetition) - 1; v > last {
		d.fail("%d, want 0 to %d", v, last)
		return FinishNone
	}
	return FinishReason(v + 1)
}

func (d *decoder) stopReason() StopReason {
	if d.null() {
		return StopReason{}
	}
	if msgp.NextType(d.b) == msgp.StrType {
		return StopReason{Text: d.string()}
	}
	return StopReason{Token: Some(d.int())}
}

// events reads a list of events, appending to dst.
func (d *decoder) events(dst []Event) []Event {
	n := d.arrayLen(MaxItems)
	for i := 0; i < n && d.err == nil; i++ {
		dst = append(dst, d.event())
		d.at(i)
	}
	return dst
}

func (d *decoder) event() Event {
	var e Event
	d.fields(func(key []byte) {
		switch string(key) {
		case "type":
			e.Type = d.eventType()
		case "timestamp":
			e.Time = d.float()
		default:
			d.skip()
		}
	})
	return e
}

func (d *decoder) eventType() EventType {
	v := d.uint()
	if v > 255 {
		d.fail("%d, want at most 255", v)
		return 0
	}
	return EventType(v)
}

func (d *decoder) prefill() *PrefillStats {
	if d.null() {
		return nil
	}
	p := &PrefillStats{}
	d.fields(func(key []byte) {
		switch string(key) {
		case "num_prompt_tokens":
			p.Prompt = d.uint()
		case "num_computed_tokens":
			p.Computed = d.uint()
		case "num_cached_tokens":
			p.Cached = d.uint()
		case "num_local_cached_tokens":
			p.LocalCached = d.uint()
		case "num_external_cached_tokens":
			p.ExternalCached = d.uint()
		case "num_cache_creation_tokens":
			p.CacheCreation = d.uint()
		default:
			d.skip()
		}
	})
	return p
}

func (d *decoder) specDecodingMetrics() *SpecDecodingMetrics {
	if d.null() {
		return nil
	}
	m := &SpecDecodingMetrics{}
	d.fields(func(key []byte) {
		switch string(key) {
		case "num_spec_tokens":
			m.SpecTokens = d.uint()
		case "histogram":
			m.Histogram = d.uints(nil)
		case "num_draft_tokens":
			m.DraftTokens = d.uint()
		case "per_step_accepted":
			m.Accepted = d.uints(nil)
		case "per_step_drafted":
			m.Drafted = d.uints(nil)
		default:
			d.skip()
		}
	})
	return m
}

func (d *decoder) requestError() *RequestError {
	if d.null() {
		return nil
	}
	e := &RequestError{}
	d.fields(func(key []byte) {
		switch string(key) {
		case "code":
			e.Code = d.string()
		case "message":
			e.Message = d.string()
		case "retryable":
			e.Retryable = d.bool()
		default:
			d.skip()
		}
	})
	return e
}

var utilityResultNames = []string{"call_id", "failure_message", "result"}

// utilityResult reads [call_id, failure, [type, value]]. Nil gives nil.
func (d *decoder) utilityResult() *UtilityResult {
	if d.null() {
		return nil
	}
	u := &UtilityResult{}
	n := d.array(utilityResultNames, func(i int) {
		switch i {
		case 0:
			u.CallID = d.callID()
		case 1:
			if !d.null() {
				u.Failure = Some(d.string())
			}
		case 2:
			u.Value = d.utilityValue()
		default:
			d.skip()
		}
	})
	if d.err == nil && n < 2 {
		d.fail("%d elements, want at least 2", n)
	}
	return u
}

func (d *decoder) utilityValue() msgp.Raw {
	var value msgp.Raw
	d.array(nil, func(i int) {
		if i == 1 {
			value = d.raw()
			return
		}
		d.skip()
	})
	return value
}
