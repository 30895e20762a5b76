package frontend

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/protocol/enginecore"
)

const hello = `"messages":[{"role":"user","content":"Hello"}]`

func TestChat_Whole(t *testing.T) {
	steps := says("Hi there", enginecore.FinishLength)
	steps[0].chunk.Prefill = enginecore.Some(enginecore.PrefillStats{Prompt: 4, Cached: 1, CacheCreation: 3})
	engines, got := answers(steps...)
	a := start(t, engines)
	r := object(t, a.post("/v1/chat/completions", `{`+hello+`,"max_tokens":2}`).body)
	message := map[string]any{"role": "assistant", "content": "Hi there", "refusal": nil, "annotations": nil, "audio": nil, "function_call": nil, "reasoning": nil}
	if diff := cmp.Diff(message, at(t, r, "choices", 0, "message")); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	usage := map[string]any{"prompt_tokens": 4.0, "total_tokens": 6.0, "completion_tokens": 2.0, "completion_tokens_details": nil,
		"prompt_tokens_details": map[string]any{"cached_tokens": 1.0, "created_cache_tokens": 3.0, "multimodal_tokens": nil}}
	if diff := cmp.Diff(usage, r["usage"]); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	if text, err := vocabulary().Decode((*got)[0].PromptTokens); err != nil || text != "<|user|>Hello<|end|><|assistant|>" {
		t.Errorf("prompt = %q, %v", text, err)
	}
}

// TestChat_MaxTokens asks for no length, and for one in both ways.
func TestChat_MaxTokens(t *testing.T) {
	engines, got := answers(says("x", enginecore.FinishLength)...)
	a := start(t, engines)
	for i, c := range []struct {
		fields string
		want   uint32
	}{{``, 4092}, {`,"max_tokens":7`, 7}, {`,"max_tokens":7,"max_completion_tokens":8`, 8}} {
		a.post("/v1/chat/completions", `{`+hello+c.fields+`}`)
		if sent := (*got)[i].Sampling.MaxTokens; sent != c.want {
			t.Errorf("%q: asked for %d tokens, want %d", c.fields, sent, c.want)
		}
	}
}

// TestChat_DefaultMaxTokens has a server that bounds answers of which nobody said how long they should be.
func TestChat_DefaultMaxTokens(t *testing.T) {
	engines, got := answers(says("x", enginecore.FinishLength)...)
	a := start(t, engines, func(o *Options) { o.DefaultMaxTokens = 100 })
	for i, c := range []struct {
		fields string
		want   uint32
	}{{``, 100}, {`,"max_tokens":700`, 700}} {
		a.post("/v1/chat/completions", `{`+hello+c.fields+`}`)
		if sent := (*got)[i].Sampling.MaxTokens; sent != c.want {
			t.Errorf("%q: asked for %d tokens, want %d", c.fields, sent, c.want)
		}
	}
}

func TestChat_Stream(t *testing.T) {
	engines, _ := answers(says("Hi there", enginecore.FinishStop)...)
	engines.SubmitFunc = func([]dispatch.Request) (Streams, error) {
		return newStreams(append(says("Hi there", enginecore.FinishNone), step{
			chunk: dispatch.Chunk{Tokens: []uint32{7}, Finish: enginecore.FinishStop, StopReason: enginecore.StopReason{Token: enginecore.Some[int64](7)}},
		})...), nil
	}
	a := start(t, engines)
	events, done := eventsOf(t, a.post("/v1/chat/completions", `{`+hello+`,"stream":true,"stop_token_ids":[7]}`).body)
	if !done || len(events) != 4 {
		t.Fatalf("%d events, done %v, want 4 and true", len(events), done)
	}
	if diff := cmp.Diff(map[string]any{"role": "assistant", "content": ""}, at(t, events[0], "choices", 0, "delta")); diff != "" {
		t.Errorf("first delta (-want +got):\n%s", diff)
	}
	text := ""
	for _, e := range events[1:] {
		text += at(t, e, "choices", 0, "delta", "content").(string)
	}
	last := at(t, events[3], "choices", 0)
	if text != "Hi there" || at(t, last, "finish_reason") != "stop" || at(t, last, "stop_reason") != 7.0 || events[3]["system_fingerprint"] == nil {
		t.Errorf("text %q, last event %v", text, events[3])
	}
}

func TestChat_Logprobs(t *testing.T) {
	ids := vocabulary().Encode("é")
	engines, got := answers(step{chunk: dispatch.Chunk{Tokens: ids, Finish: enginecore.FinishLength, Logprobs: dispatch.Logprobs{
		Width: 3, Tokens: []uint32{ids[0], 65, ids[0]}, Values: []float32{-2, -0.5, -2}, Ranks: []uint32{2},
	}}})
	a := start(t, engines)
	r := object(t, a.post("/v1/chat/completions", `{`+hello+`,"logprobs":true,"top_logprobs":2}`).body)
	own := map[string]any{"token": "é", "logprob": -2.0, "bytes": []any{195.0, 169.0}}
	entry := map[string]any{"token": "é", "logprob": -2.0, "bytes": []any{195.0, 169.0}, "top_logprobs": []any{
		own, map[string]any{"token": "b", "logprob": -0.5, "bytes": []any{98.0}},
	}}
	want := map[string]any{"content": []any{entry}}
	if diff := cmp.Diff(want, at(t, r, "choices", 0, "logprobs")); diff != "" {
		t.Errorf("logprobs (-want +got):\n%s", diff)
	}
	if sent := (*got)[0].Sampling.Logprobs; sent != enginecore.Some[int64](2) {
		t.Errorf("asked for %+v logprobs, want 2", sent)
	}
}

// forced is engines that answer as the front end tells them.
func forced() *fakeEngines {
	return &fakeEngines{SubmitFunc: func(requests []dispatch.Request) (Streams, error) {
		var steps []step
		for i := range max(1, requests[0].Choices) {
			p := *requests[0].Sampling
			if requests[0].Vary != nil {
				requests[0].Vary(i, &p)
			}
			for n, id := range p.TraceDecodeTokenIDs {
				s := step{stream: i, chunk: dispatch.Chunk{Tokens: []uint32{id}}}
				switch {
				case p.EOSTokenID == enginecore.Some(id) && !p.IgnoreEOS:
					s.chunk.Finish = enginecore.FinishStop
				case uint32(n)+1 == p.MaxTokens:
					s.chunk.Finish = enginecore.FinishLength
				}
				steps = append(steps, s)
				if s.chunk.Finish != enginecore.FinishNone {
					break
				}
			}
		}
		return newStreams(steps...), nil
	}}
}

const weather = `"tools":[{"type":"function","function":{"name":"weather","description":"d","parameters":{"type":"object",
	"properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":5}},"required":["city","days"]}}}]`

func TestChat_Tools(t *testing.T) {
	a := start(t, forced())
	for _, c := range []struct{ fields, finish string }{
		{``, "tool_calls"},
		{`,"tool_choice":"required","ignore_eos":true,"min_tokens":90`, "tool_calls"},
		{`,"tool_choice":{"type":"function","function":{"name":"weather"}}`, "stop"},
	} {
		r := object(t, a.post("/v1/chat/completions", `{`+hello+`,`+weather+c.fields+`,"n":2,"seed":1}`).body)
		for i := range 2 {
			choice := at(t, r, "choices", i)
			call := at(t, choice, "message", "tool_calls", 0)
			if at(t, choice, "finish_reason") != c.finish || at(t, choice, "message", "content") != nil || at(t, call, "function", "name") != "weather" {
				t.Errorf("%s: choice %v, want finish %q", c.fields, choice, c.finish)
			}
			wantArguments(t, at(t, call, "function", "arguments"))
		}
	}
}

// wantArguments checks what weather was called with.
func wantArguments(t *testing.T, arguments any) {
	t.Helper()
	var v struct {
		City *string
		Days int
	}
	text, _ := arguments.(string)
	if err := json.Unmarshal([]byte(text), &v); err != nil || v.City == nil || v.Days < 1 || v.Days > 5 {
		t.Errorf("arguments %q, %v, want what the schema allows", text, err)
	}
}

func TestChat_ToolsStream(t *testing.T) {
	a := start(t, forced())
	events, done := eventsOf(t, a.post("/v1/chat/completions", `{`+hello+`,`+weather+`,"stream":true}`).body)
	first := at(t, events[0], "choices", 0, "delta", "tool_calls", 0)
	if !done || at(t, first, "function", "name") != "weather" || !strings.HasPrefix(at(t, first, "id").(string), "chatcmpl-tool-") {
		t.Errorf("first %v, done %v", first, done)
	}
	arguments := ""
	for _, e := range events[1:] {
		arguments += at(t, e, "choices", 0, "delta", "tool_calls", 0, "function", "arguments").(string)
	}
	wantArguments(t, arguments)
	if finish := at(t, events[len(events)-1], "choices", 0, "finish_reason"); finish != "tool_calls" {
		t.Errorf("finish = %v, want tool_calls", finish)
	}
}

// TestChat_NoCall has turns at which the model speaks though there are tools.
func TestChat_NoCall(t *testing.T) {
	engines, _ := answers(says("Sunny", enginecore.FinishLength)...)
	a := start(t, engines)
	for _, body := range []string{
		`{` + hello + `,` + weather + `,"tool_choice":"none"}`,
		`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"weather","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"c","content":"sun"}],` + weather + `}`,
	} {
		r := object(t, a.post("/v1/chat/completions", body).body)
		if got := at(t, r, "choices", 0, "message", "content"); got != "Sunny" {
			t.Errorf("content = %v, want Sunny", got)
		}
	}
}

func TestChat_ResponseFormat(t *testing.T) {
	a := start(t, forced())
	for _, format := range []string{
		`"response_format":{"type":"json_object"}`,
		`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}}`,
		`"structured_outputs":{"json":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}`,
	} {
		r := object(t, a.post("/v1/chat/completions", `{`+hello+`,`+format+`}`).body)
		content, _ := at(t, r, "choices", 0, "message", "content").(string)
		object(t, content)
		if finish := at(t, r, "choices", 0, "finish_reason"); finish != "stop" {
			t.Errorf("%s: finish = %v, want stop", format, finish)
		}
	}
	r := object(t, a.post("/v1/chat/completions", `{`+hello+`,"response_format":{"type":"json_object"},"max_tokens":2}`).body)
	if finish := at(t, r, "choices", 0, "finish_reason"); finish != "length" {
		t.Errorf("cut: finish = %v, want length", finish)
	}
	r = object(t, a.post("/v1/completions", `{"prompt":"x","structured_outputs":{"choice":["yes","no"]}}`).body)
	if text := at(t, r, "choices", 0, "text"); text != "yes" && text != "no" {
		t.Errorf("choice = %v, want yes or no", text)
	}
	wantError(t, a.post("/v1/chat/completions", `{`+hello+`,"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"odd"}}}}`), 400, "response_format")
	wantError(t, a.post("/v1/chat/completions", `{`+hello+`,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"odd"}}}]}`), 400, "tools")
}

func TestResponses(t *testing.T) {
	engines, got := answers(says("Hi there you", enginecore.FinishLength)...)
	a := start(t, engines)
	r := object(t, a.post("/v1/responses", `{"input":"Hello","max_output_tokens":3,"metadata":{"k":"v"}}`).body)
	for key, want := range map[string]any{
		"object": "response", "status": "incomplete", "incomplete_details": map[string]any{"reason": "max_output_tokens"},
		"metadata": map[string]any{"k": "v"}, "tool_choice": "none", "max_output_tokens": 3.0,
	} {
		if diff := cmp.Diff(want, r[key]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	if text := at(t, r, "output", 0, "content", 0, "text"); text != "Hi there you" || at(t, r, "usage", "total_tokens") != 7.0 {
		t.Errorf("text = %v, usage %v", text, r["usage"])
	}
	if id := r["id"].(string); !strings.HasPrefix(id, "resp_") || (*got)[0].ExternalID != id {
		t.Errorf("id = %q, sent %q", id, (*got)[0].ExternalID)
	}
	wantError(t, a.post("/v1/responses", `{"input":"x","previous_response_id":"resp_1"}`), 404, "resp_1")
}

// TestResponses_Stream checks the order of events and that what is told in pieces is told whole at the end.
func TestResponses_Stream(t *testing.T) {
	engines, _ := answers(says("Hi there", enginecore.FinishStop)...)
	engines.SubmitFunc = func([]dispatch.Request) (Streams, error) {
		return newStreams(append(says("Hi there", enginecore.FinishNone),
			step{chunk: dispatch.Chunk{Tokens: []uint32{vocabulary().EOS()}, Finish: enginecore.FinishStop}})...), nil
	}
	wantTypes(t, start(t, engines), `{"input":"Hello","stream":true}`, []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
		"response.output_text.delta", "response.output_text.delta", "response.output_text.done",
		"response.content_part.done", "response.output_item.done", "response.completed",
	}, func(last map[string]any) {
		if text := at(t, last, "response", "output", 0, "content", 0, "text"); text != "Hi there" || at(t, last, "response", "status") != "completed" {
			t.Errorf("completed %v", last)
		}
	})
	tool := `"tools":[{"type":"function","name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":5}},"required":["city","days"]}}]`
	wantTypes(t, start(t, forced()), `{"input":"Hello","stream":true,`+tool+`}`, []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.function_call_arguments.delta",
		"response.function_call_arguments.done", "response.output_item.done", "response.completed",
	}, func(last map[string]any) {
		item := at(t, last, "response", "output", 0)
		if at(t, item, "type") != "function_call" || at(t, item, "name") != "weather" {
			t.Errorf("item %v", item)
		}
		wantArguments(t, at(t, item, "arguments"))
	})
}

// wantTypes checks the types of a stream's events, deltas beyond the first of a kind left out where there are fewer wanted.
func wantTypes(t *testing.T, a *api, body string, want []string, check func(last map[string]any)) {
	t.Helper()
	events, _ := eventsOf(t, a.post("/v1/responses", body).body)
	var types []string
	for i, e := range events {
		kind := e["type"].(string)
		if e["sequence_number"] != float64(i) {
			t.Errorf("event %d has number %v", i, e["sequence_number"])
		}
		if kind == "response.function_call_arguments.delta" && types[len(types)-1] == kind {
			continue
		}
		types = append(types, kind)
	}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	check(events[len(events)-1])
}
