package enginecore

import (
	"encoding/json"
	"fmt"
	"testing"
)

// addList is an ADD's JSON as the array it is on the wire.
func (g *golden) addList(t *testing.T) []any {
	t.Helper()
	switch v := fromJSON(t, g.Decoded).(type) {
	case []any:
		return v
	case map[string]any:
		fields := v["fields"].(map[string]any)
		list := make([]any, len(fields))
		for i := range list {
			list[i] = fields[addNames[i]]
		}
		return list
	}
	t.Fatalf("ADD golden: %s", g.Decoded)
	return nil
}

func checkAdd(t *testing.T, g *golden) {
	var r Request
	if err := DecodeRequest(g.payload(), &r); err != nil {
		t.Fatal(err)
	}
	v := g.version(t)
	sameBytes(t, AppendRequest(nil, v, &r), g.payload())
	checkAddFields(t, &r, g.addList(t))
	if r.Sampling == nil {
		return
	}
	r.Sampling.Wire = nil // from the fields alone
	fromFields := AppendRequest(nil, v, &r)
	sameValue(t, generic(t, fromFields), any(g.addList(t)))
	if r.ExternalID == "" || r.Sampling.Explicit&KeyBadWords != 0 { // made by Python, whose order and widths are ours
		sameBytes(t, fromFields, g.payload())
	}
}

// checkAddFields compares the fields an engine acts on with the JSON, one by one, so that no two of them can be mixed up unseen.
func checkAddFields(t *testing.T, r *Request, want []any) {
	t.Helper()
	number := func(v any) any { return json.Number(fmt.Sprint(v)) }
	orNil := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	sameValue(t, any(r.ID), want[addID])
	sameValue(t, any(r.ArrivalTime), want[addArrivalTime])
	sameValue(t, orNil(r.CacheSalt), want[addCacheSalt])
	sameValue(t, number(r.ClientIndex), want[addClientIndex])
	sameValue(t, number(r.CurrentWave), want[addCurrentWave])
	sameValue(t, number(r.Priority), want[addPriority])
	sameValue(t, any(r.Resumable), want[addResumable])
	sameValue(t, orNil(r.ExternalID), want[addExternalID])
	sameValue(t, any(r.AbortImmediately), want[addAbortImmediately])
	if tokens, ok := want[addPromptTokens].([]any); ok {
		for i := range tokens {
			sameValue(t, number(r.PromptTokens[i]), tokens[i])
		}
	}
	if sampling, ok := want[addSampling].(map[string]any); ok {
		checkSampling(t, r.Sampling, sampling, number)
	}
}

func checkSampling(t *testing.T, s *SamplingParams, want map[string]any, number func(any) any) {
	t.Helper()
	if max, sent := want["max_tokens"]; sent {
		sameValue(t, number(s.MaxTokens), max)
	} else if s.MaxTokens != 16 {
		t.Errorf("max_tokens absent: %d, want 16", s.MaxTokens)
	}
	if temperature, sent := want["temperature"]; sent {
		sameValue(t, any(s.Temperature), temperature)
	} else if s.Temperature != 1 {
		t.Errorf("temperature absent: %v, want 1", s.Temperature)
	}
	if eos, sent := want["_eos_token_id"]; sent {
		sameValue(t, number(s.EOSTokenID.Value), eos)
	} else if s.EOSTokenID.Set {
		t.Errorf("_eos_token_id absent: %v, want none", s.EOSTokenID)
	}
}

func checkAbort(t *testing.T, g *golden) {
	ids, err := DecodeAbort(g.payload())
	if err != nil {
		t.Fatal(err)
	}
	sameBytes(t, AppendAbort(nil, ids), g.payload())
	sameValue(t, generic(t, AppendAbort(nil, ids)), g.field(t, "request_ids"))
}

// field is a value of the JSON object, or the whole where it is none.
func (g *golden) field(t *testing.T, name string) any {
	t.Helper()
	v := fromJSON(t, g.Decoded)
	if object, ok := v.(map[string]any); ok {
		return object[name]
	}
	return v
}

func checkUtility(t *testing.T, g *golden) {
	call, err := DecodeUtility(g.payload())
	if err != nil {
		t.Fatal(err)
	}
	sameBytes(t, AppendUtility(nil, call), g.payload())
	if list, ok := fromJSON(t, g.Decoded).([]any); ok {
		sameValue(t, generic(t, AppendUtility(nil, call)), any(list))
		return
	}
	sameValue(t, json.Number(fmt.Sprint(call.ClientIndex)), g.field(t, "client_index").(json.Number))
	sameValue(t, json.Number(call.CallID.String()), g.field(t, "call_id").(json.Number))
	sameValue(t, any(call.Method), g.field(t, "method"))
	sameValue(t, generic(t, call.Args), g.field(t, "args"))
}

func checkStartWave(t *testing.T, g *golden) {
	w, err := DecodeStartWave(g.payload())
	if err != nil {
		t.Fatal(err)
	}
	sameBytes(t, AppendStartWave(nil, w), g.payload())
	want := fromJSON(t, g.Decoded).([]any)
	if inner, ok := want[1].([]any); ok { // captured ones show both frames
		want = inner
	}
	sameValue(t, json.Number(fmt.Sprint(w.Wave)), want[0].(json.Number))
}

func checkInit(t *testing.T, g *golden) {
	in, err := DecodeInit(g.payload())
	if err != nil {
		t.Fatal(err)
	}
	sameBytes(t, AppendInit(nil, in), g.payload())
	sameValue(t, generic(t, AppendInit(nil, in)), fromJSON(t, g.Decoded))
}

func checkHello(t *testing.T, g *golden) {
	h, err := DecodeHello(g.payload())
	if err != nil {
		t.Fatal(err)
	}
	want := fromJSON(t, g.Decoded).(map[string]any)
	if want["parallel_config_hash"] == nil {
		delete(want, "parallel_config_hash") // ours leaves it out
	}
	sameValue(t, generic(t, AppendHello(nil, h)), any(want))
}

func checkReady(t *testing.T, g *golden) {
	r, err := DecodeReady(g.payload())
	if err != nil {
		t.Fatal(err)
	}
	got := generic(t, AppendReady(nil, &r)).(map[string]any)
	want := fromJSON(t, g.Decoded).(map[string]any)
	for key, value := range want {
		sameValue(t, map[string]any{key: got[key]}, any(map[string]any{key: value}))
	}
	if len(got) != 28 {
		t.Errorf("%d keys, want the 28 of all lines", len(got))
	}
}

func checkOutputs(t *testing.T, g *golden) {
	o := Outputs{Version: g.version(t)}
	if err := DecodeOutputs(g.payload(), &o); err != nil {
		t.Fatal(err)
	}
	encoded := encodeOutputs(&o)
	sameValue(t, trimOutputs(generic(t, encoded)), trimOutputs(fromJSON(t, g.Decoded)))
	again := Outputs{Version: o.Version}
	if err := DecodeOutputs(encoded, &again); err != nil {
		t.Fatalf("decoding ours: %v", err)
	}
	sameOutputs(t, &again, &o)
}

// trimOutputs trims the message and each of its outputs, so that trimmed and full ones compare.
func trimOutputs(v any) any {
	message := trimmed(v.([]any), 4)
	outputs := message[outputsRequests].([]any)
	for i := range outputs {
		outputs[i] = trimmed(outputs[i].([]any), 2)
	}
	return message
}

// encodeOutputs says with our encoders what was decoded.
func encodeOutputs(o *Outputs) []byte {
	switch {
	case o.Utility != nil && o.Utility.Failure.Set:
		return AppendUtilityFailure(nil, o.EngineIndex, o.Timestamp, o.Utility.CallID, o.Utility.Failure.Value)
	case o.Utility != nil:
		return AppendUtilityResult(nil, o.EngineIndex, o.Timestamp, o.Utility.CallID, o.Utility.Value)
	case o.WaveComplete.Set:
		return AppendOutputsWaveComplete(nil, o.EngineIndex, o.Timestamp, o.WaveComplete.Value)
	case o.StartWave.Set:
		return AppendOutputsStartWave(nil, o.EngineIndex, o.Timestamp, o.StartWave.Value)
	}
	var b Batch
	b.Reset(o.Version, o.EngineIndex)
	for i := range o.Requests {
		b.Add(EncodeID(string(o.Requests[i].ID)), &o.Requests[i].Output)
	}
	for _, id := range o.Finished {
		b.Finished(EncodeID(id))
	}
	b.WeightVersion(o.WeightVersion)
	return b.Finish(o.Stats, o.Timestamp)
}
