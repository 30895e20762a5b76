package frontend

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tinylib/msgp/msgp"

	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/protocol/enginecore"
)

func TestCompletions_Whole(t *testing.T) {
	engines, got := answers(says("one two three", enginecore.FinishLength)...)
	a := start(t, engines)
	r := a.post("/v1/completions", `{"model":"tiny","prompt":"Hello world","max_tokens":3,"seed":7,"priority":-2,"cache_salt":"s"}`,
		"X-Request-Id: mine", "X-data-parallel-rank: 1")
	answer := object(t, r.body)
	if r.status != http.StatusOK || at(t, answer, "choices", 0, "text") != "one two three" || at(t, answer, "choices", 0, "finish_reason") != "length" {
		t.Errorf("answer = %d %s", r.status, r.body)
	}
	if id := answer["id"]; id != "cmpl-mine" {
		t.Errorf("id = %v, want cmpl-mine", id)
	}
	want := map[string]any{"prompt_tokens": 2.0, "total_tokens": 5.0, "completion_tokens": 3.0, "completion_tokens_details": nil,
		"prompt_tokens_details": map[string]any{"cached_tokens": 0.0, "created_cache_tokens": nil, "multimodal_tokens": nil}}
	if diff := cmp.Diff(want, answer["usage"]); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	sent := (*got)[0]
	if sent.ExternalID != "cmpl-mine-0" || sent.Rank != enginecore.Some(1) || sent.Priority != -2 || sent.CacheSalt != "s" ||
		sent.Sampling.MaxTokens != 3 || sent.Sampling.Seed != enginecore.Some[int64](7) || !sent.Sampling.EOSTokenID.Set {
		t.Errorf("sent %+v with %+v", sent, sent.Sampling)
	}
}

func TestCompletions_Stream(t *testing.T) {
	engines, _ := answers(says("one two three", enginecore.FinishLength)...)
	a := start(t, engines)
	r := a.post("/v1/completions", `{"prompt":"Hello world","max_tokens":3,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`)
	events, done := eventsOf(t, r.body)
	if r.status != http.StatusOK || !done || r.err != nil || r.header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
		t.Fatalf("stream = %d %v, done %v, %v", r.status, r.header, done, r.err)
	}
	text := ""
	for i, e := range events[:3] {
		text += at(t, e, "choices", 0, "text").(string)
		if got, want := at(t, e, "usage", "completion_tokens"), float64(i+1); got != want {
			t.Errorf("event %d: completion tokens = %v, want %v", i, got, want)
		}
	}
	if text != "one two three" || at(t, events[2], "choices", 0, "finish_reason") != "length" {
		t.Errorf("text = %q, last event %v", text, events[2])
	}
	if len(events) != 4 || at(t, events[3], "usage", "total_tokens") != 5.0 {
		t.Errorf("%d events, the last %v, want 4 and the usage", len(events), events[len(events)-1])
	}
}

// TestCompletions_SplitCharacter has a character that three tokens make: no event may hold a part of it.
func TestCompletions_SplitCharacter(t *testing.T) {
	engines, _ := answers(says("a 🇩🇪 \"b\"\n", enginecore.FinishStop)...)
	engines.SubmitFunc = func([]dispatch.Request) (Streams, error) {
		steps := says("a 🇩🇪 \"b\"\n", enginecore.FinishNone)
		return newStreams(append(steps, step{chunk: dispatch.Chunk{Tokens: []uint32{vocabulary().EOS()}, Finish: enginecore.FinishStop}})...), nil
	}
	a := start(t, engines)
	events, done := eventsOf(t, a.post("/v1/completions", `{"prompt":"x","stream":true}`).body)
	text := ""
	for _, e := range events {
		text += at(t, e, "choices", 0, "text").(string)
	}
	if text != "a 🇩🇪 \"b\"\n" || !done || at(t, events[len(events)-1], "choices", 0, "finish_reason") != "stop" {
		t.Errorf("text %q, done %v, last %v", text, done, events[len(events)-1])
	}
}

func TestCompletions_Prompts(t *testing.T) {
	steps := []step{
		{stream: 3, chunk: dispatch.Chunk{Tokens: []uint32{64}, Finish: enginecore.FinishLength, Prefill: enginecore.Some(enginecore.PrefillStats{Cached: 9})}},
		{stream: 0, chunk: dispatch.Chunk{Tokens: []uint32{65}, Finish: enginecore.FinishLength, Prefill: enginecore.Some(enginecore.PrefillStats{Cached: 1})}},
		{stream: 2, chunk: dispatch.Chunk{Tokens: []uint32{66}, Finish: enginecore.FinishLength, Prefill: enginecore.Some(enginecore.PrefillStats{Cached: 2})}},
		{stream: 1, chunk: dispatch.Chunk{Tokens: []uint32{67}, Finish: enginecore.FinishLength}},
	}
	engines, got := answers(steps...)
	a := start(t, engines)
	answer := object(t, a.post("/v1/completions", `{"prompt":[[1,2,3],[4]],"n":2,"max_tokens":1}`).body)
	text := ""
	for i := range 4 {
		text += at(t, answer, "choices", i, "text").(string)
		if got := at(t, answer, "choices", i, "index"); got != float64(i) {
			t.Errorf("index = %v, want %d", got, i)
		}
	}
	if text != "bdca" {
		t.Errorf("texts = %q, want bdca", text)
	}
	if p, c, cached := at(t, answer, "usage", "prompt_tokens"), at(t, answer, "usage", "completion_tokens"),
		at(t, answer, "usage", "prompt_tokens_details", "cached_tokens"); p != 4.0 || c != 4.0 || cached != 3.0 {
		t.Errorf("usage %v and %v tokens, %v cached, want 4, 4, 3", p, c, cached)
	}
	if len(*got) != 2 || (*got)[0].Choices != 2 || (*got)[1].ExternalID != at(t, answer, "id").(string)+"-1" {
		t.Errorf("sent %+v", *got)
	}
}

func TestCompletions_StopString(t *testing.T) {
	for _, stream := range []bool{false, true} {
		streams := newStreams(says("one two three four", enginecore.FinishLength)...)
		a := start(t, &fakeEngines{SubmitFunc: func([]dispatch.Request) (Streams, error) { return streams, nil }})
		body := `{"prompt":"x","stop":[" three"],"max_tokens":50}`
		if stream {
			body = strings.Replace(body, "{", `{"stream":true,`, 1)
		}
		r := a.post("/v1/completions", body)
		text, finish, stop := "", any(nil), any(nil)
		if stream {
			events, done := eventsOf(t, r.body)
			for _, e := range events {
				text += at(t, e, "choices", 0, "text").(string)
				finish, stop = at(t, e, "choices", 0, "finish_reason"), at(t, e, "choices", 0, "stop_reason")
			}
			if !done {
				t.Error("stream has no [DONE]")
			}
		} else {
			c := at(t, object(t, r.body), "choices", 0)
			text, finish, stop = at(t, c, "text").(string), at(t, c, "finish_reason"), at(t, c, "stop_reason")
			if got := at(t, object(t, r.body), "usage", "completion_tokens"); got != 3.0 {
				t.Errorf("completion tokens = %v, want 3", got)
			}
		}
		if text != "one two" || finish != "stop" || stop != " three" {
			t.Errorf("stream %v: %q, %v, %v, want \"one two\", stop, \" three\"", stream, text, finish, stop)
		}
		if diff := cmp.Diff([]int{0}, streams.stopped); diff != "" {
			t.Errorf("stopped (-want +got):\n%s", diff)
		}
	}
}

func TestCompletions_Echo(t *testing.T) {
	engines, got := answers(says(" you", enginecore.FinishLength)...)
	a := start(t, engines)
	r := object(t, a.post("/v1/completions", `{"prompt":"How are","echo":true,"max_tokens":1,"return_token_ids":true}`).body)
	if text := at(t, r, "choices", 0, "text"); text != "How are you" {
		t.Errorf("text = %q", text)
	}
	ids := []any{4438.0, 527.0}
	if diff := cmp.Diff(ids, at(t, r, "choices", 0, "prompt_token_ids")); diff != "" {
		t.Errorf("prompt ids (-want +got):\n%s", diff)
	}
	r = object(t, a.post("/v1/completions", `{"prompt":[4438,527],"echo":true,"max_tokens":0}`).body)
	if text := at(t, r, "choices", 0, "text"); text != "How are" || at(t, r, "choices", 0, "finish_reason") != "length" {
		t.Errorf("answer = %v", r)
	}
	if sent := (*got)[1].Sampling.MaxTokens; sent != 1 {
		t.Errorf("asked the engine for %d tokens, want 1", sent)
	}
	events, _ := eventsOf(t, a.post("/v1/completions", `{"prompt":"How are","echo":true,"max_tokens":1,"stream":true}`).body)
	if text := at(t, events[0], "choices", 0, "text"); text != "How are you" {
		t.Errorf("first event's text = %q", text)
	}
}

func TestCompletions_Logprobs(t *testing.T) {
	ids := vocabulary().Encode("é two")
	chunk := dispatch.Chunk{Tokens: ids, Finish: enginecore.FinishLength, Logprobs: dispatch.Logprobs{
		Width: 3, Tokens: []uint32{ids[0], ids[0], 65, ids[1], 66, ids[1]}, Values: []float32{-0.5, -0.5, -1, -2, -0.25, -2}, Ranks: []uint32{1, 2},
	}, PromptLogprobs: dispatch.Logprobs{Width: 2, Tokens: []uint32{527, 64}, Values: []float32{-1.5, -0.125}, Ranks: []uint32{7}}}
	engines, got := answers(step{chunk: chunk})
	a := start(t, engines)
	r := object(t, a.post("/v1/completions", `{"prompt":"How are","logprobs":2}`).body)
	want := map[string]any{
		"text_offset": []any{0.0, 1.0}, "tokens": []any{"é", " two"}, "token_logprobs": []any{-0.5, -2.0},
		"top_logprobs": []any{map[string]any{"é": -0.5, "b": -1.0}, map[string]any{" two": -2.0, "c": -0.25}},
	}
	if diff := cmp.Diff(want, at(t, r, "choices", 0, "logprobs")); diff != "" {
		t.Errorf("logprobs (-want +got):\n%s", diff)
	}
	r = object(t, a.post("/v1/completions", `{"prompt":"How are","logprobs":0,"echo":true,"return_tokens_as_token_ids":true}`).body)
	want = map[string]any{
		"text_offset": []any{0.0, 13.0, 25.0, 37.0}, "tokens": []any{"token_id:4438", "token_id:527", "token_id:978", "token_id:1403"},
		"token_logprobs": []any{nil, -1.5, -0.5, -2.0},
		"top_logprobs":   []any{nil, map[string]any{"token_id:527": -1.5}, map[string]any{"token_id:978": -0.5}, map[string]any{"token_id:1403": -2.0}},
	}
	if diff := cmp.Diff(want, at(t, r, "choices", 0, "logprobs")); diff != "" {
		t.Errorf("logprobs with echo (-want +got):\n%s", diff)
	}
	if sent := (*got)[1].Sampling; sent.PromptLogprobs != enginecore.Some[int64](0) || sent.Logprobs != enginecore.Some[int64](0) {
		t.Errorf("asked for %+v and %+v logprobs, want 0 and 0", sent.PromptLogprobs, sent.Logprobs)
	}
	engines.SubmitFunc = func([]dispatch.Request) (Streams, error) {
		one := chunk
		one.PromptLogprobs = dispatch.Logprobs{}
		return newStreams(step{chunk: one}), nil
	}
	r = object(t, a.post("/v1/completions", `{"prompt":"How","logprobs":1,"echo":true,"prompt_logprobs":1}`).body)
	if diff := cmp.Diff([]any{"How", "é", " two"}, at(t, r, "choices", 0, "logprobs", "tokens")); diff != "" {
		t.Errorf("tokens after a prompt of one (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{nil}, at(t, r, "choices", 0, "prompt_logprobs")); diff != "" {
		t.Errorf("logprobs of a prompt of one (-want +got):\n%s", diff)
	}
	engines.SubmitFunc = func([]dispatch.Request) (Streams, error) { return newStreams(step{chunk: chunk}), nil }
	r = object(t, a.post("/v1/completions", `{"prompt":"How are","prompt_logprobs":1}`).body)
	prompt := []any{nil, map[string]any{
		"527": map[string]any{"logprob": -1.5, "rank": 7.0, "decoded_token": " are"},
		"64":  map[string]any{"logprob": -0.125, "rank": 1.0, "decoded_token": "a"},
	}}
	if diff := cmp.Diff(prompt, at(t, r, "choices", 0, "prompt_logprobs")); diff != "" {
		t.Errorf("prompt logprobs (-want +got):\n%s", diff)
	}
}

// TestCompletions_EngineErrors has requests fail before and after their first output.
// What an engine answered before it failed reaches the client of a stream, also where both were read at once; unless the text
// was complete before.
func TestCompletions_ErrorBehindTokens(t *testing.T) {
	whole := dispatch.Chunk{Tokens: vocabulary().Encode("Hello world"), Finish: enginecore.FinishError}
	engines, _ := answers(step{chunk: whole})
	a := start(t, engines)
	events, done := eventsOf(t, a.post("/v1/completions", `{"prompt":"x","max_tokens":9,"stream":true}`).body)
	if len(events) != 2 || !done || at(t, events[0], "choices", 0, "text") != "Hello world" || at(t, events[1], "error", "code") != 500.0 {
		t.Errorf("events = %v, done %v, want the text, an error and [DONE]", events, done)
	}
	wantError(t, a.post("/v1/completions", `{"prompt":"x","max_tokens":9}`), http.StatusInternalServerError, "")
	got := object(t, a.post("/v1/completions", `{"prompt":"x","max_tokens":9,"stop":" world"}`).body)
	if at(t, got, "choices", 0, "text") != "Hello" || at(t, got, "choices", 0, "finish_reason") != "stop" {
		t.Errorf("answer = %v, want Hello that stopped", got)
	}
}

func TestCompletions_EngineErrors(t *testing.T) {
	dead := &dispatch.EngineDeadError{Rank: 1, Cause: fmt.Errorf("connection: %w", io.EOF)}
	failed := func(e *enginecore.RequestError) step {
		return step{chunk: dispatch.Chunk{Finish: enginecore.FinishError, Error: e}}
	}
	for _, c := range []struct {
		name   string
		end    step
		status int
		says   string
		clean  bool // a stream that has begun comes to its end
	}{
		{"error", failed(nil), 500, "Internal server error", true},
		{"refused", failed(&enginecore.RequestError{Code: "validation_error", Message: "no good"}), 400, "no good", true},
		{"paused", failed(&enginecore.RequestError{Code: "engine_paused", Message: "later", Retryable: true}), 503, "later", true},
		{"other", failed(&enginecore.RequestError{Code: "x", Message: "odd"}), 500, "odd", true},
		{"dead", step{err: dead}, 500, "engine 1 is gone", false},
		{"unreadable", step{err: errBoom}, 500, "boom", false},
		{"no end", step{err: io.EOF}, 500, "without a reason", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			engines, _ := answers(c.end)
			a := start(t, engines)
			for _, stream := range []string{"false", "true"} {
				wantError(t, a.post("/v1/completions", `{"prompt":"x","stream":`+stream+`}`), c.status, c.says)
			}
			engines, _ = answers(append(says("a b", enginecore.FinishNone), c.end)...)
			a = start(t, engines)
			wantError(t, a.post("/v1/completions", `{"prompt":"x"}`), c.status, c.says)
			r := a.post("/v1/completions", `{"prompt":"x","stream":true}`)
			events, done := eventsOf(t, r.body)
			last := events[len(events)-1]
			if r.status != 200 || len(events) != 3 || at(t, last, "error", "code") != float64(c.status) || !strings.Contains(at(t, last, "error", "message").(string), c.says) {
				t.Errorf("stream = %d %s", r.status, r.body)
			}
			if done != c.clean || (r.err == nil) != c.clean {
				t.Errorf("done %v, error %v, want a clean end: %v", done, r.err, c.clean)
			}
		})
	}
}

func TestCompletions_NotSubmitted(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		says   string
	}{
		{dispatch.ErrNoEngine, 503, "No engine"},
		{errors.Join(errors.New("rank 7"), dispatch.ErrRank), 400, "rank 7"},
		{dispatch.ErrClosed, 503, "shutting down"},
	} {
		a := start(t, &fakeEngines{SubmitFunc: func([]dispatch.Request) (Streams, error) { return nil, c.err }})
		wantError(t, a.post("/v1/completions", `{"prompt":"x","stream":true}`), c.status, c.says)
		if n := a.gate.load(); n != 0 {
			t.Errorf("%d requests counted, want none", n)
		}
	}
}

// TestCompletions_Refused never reaches an engine.
func TestCompletions_Refused(t *testing.T) {
	a := start(t, &fakeEngines{MaxModelLenFunc: func() uint64 { return 1024 }})
	long := strings.Repeat("a ", 1028)
	for _, c := range []struct {
		body   string
		status int
		says   string
	}{
		{``, 400, "empty"},
		{`{"prompt":`, 400, "JSON"},
		{`{"prompt":"x","temperature":-1}`, 400, "temperature"},
		{`{"prompt":""}`, 400, "empty"},
		{`{"prompt":"x","model":"unknown"}`, 404, "`unknown`"},
		{`{"stream":true,"prompt":"` + long + `"}`, 400, "maximum context length is 1024 tokens"},
		{`{"stream":true,"prompt":"` + strings.Repeat(long, 1000) + `"}`, 400, "more than 1024 tokens"},
		{`{"prompt":"x","max_tokens":1024}`, 400, "1 tokens and 1024 more"},
		{`{"prompt":[100300]}`, 400, "100300"},
		{`{"prompt":"x","stop":["` + strings.Repeat("y", 2<<20) + `"]}`, 400, "stop"},
	} {
		wantError(t, a.post("/v1/completions", c.body), c.status, c.says)
	}
	wantError(t, a.post("/v1/completions", `{"prompt":"x"}`, "X-data-parallel-rank: one"), 400, "one")
	wantError(t, a.post("/v1/completions", `{"prompt":"x"}`, "X-Request-Id: "+strings.Repeat("x", 300)), 400, "300 bytes")
	wantError(t, a.post("/v1/completions", `{"prompt":"x"}`, "Content-Type: text/plain"), 415, "text/plain")
}

func TestCompletions_KVTransfer(t *testing.T) {
	raw := rawMap(t, map[string]any{"remote_port": int64(5600), "remote_block_ids": []any{int64(1), int64(2)}})
	engines, got := answers(step{chunk: dispatch.Chunk{Tokens: []uint32{64}, Finish: enginecore.FinishLength, KVTransfer: raw}})
	a := start(t, engines)
	r := object(t, a.post("/v1/completions", `{"prompt":"x","max_tokens":1,"vllm_xargs":{"a":1.5},"kv_transfer_params":{"port":18446744073709551615,"ids":[[1],null,true]}}`).body)
	want := map[string]any{"remote_port": 5600.0, "remote_block_ids": []any{1.0, 2.0}}
	if diff := cmp.Diff(want, r["kv_transfer_params"]); diff != "" {
		t.Errorf("kv_transfer_params (-want +got):\n%s", diff)
	}
	sent := object(t, string(jsonOf((*got)[0].Sampling.ExtraArgs)))
	wantSent := map[string]any{"a": 1.5, "kv_transfer_params": map[string]any{"port": 18446744073709551615.0, "ids": []any{[]any{1.0}, nil, true}}}
	if diff := cmp.Diff(wantSent, sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// The route of tokens knows an engine's arguments by the engine's own name for them.
func TestGenerate_EngineArguments(t *testing.T) {
	for name, status := range map[string]int{
		`"extra_args":{"a":1}`: 200, `"vllm_xargs":{"a":1}`: 200, `"extra_args":{"a":1},"vllm_xargs":{"a":1}`: 400, `"extra_args":[]`: 400,
	} {
		engines, got := answers(step{chunk: dispatch.Chunk{Tokens: []uint32{64}, Finish: enginecore.FinishLength}})
		a := start(t, engines)
		if r := a.post("/inference/v1/generate", `{"token_ids":[1],"sampling_params":{"max_tokens":1,`+name+`}}`); r.status != status {
			t.Errorf("%s: %d %s, want %d", name, r.status, r.body, status)
		}
		if status != 200 {
			continue
		}
		if diff := cmp.Diff(map[string]any{"a": 1.0}, object(t, string(jsonOf((*got)[0].Sampling.ExtraArgs)))); diff != "" {
			t.Errorf("%s: sent (-want +got):\n%s", name, diff)
		}
	}
}

func rawMap(t *testing.T, m map[string]any) msgp.Raw {
	t.Helper()
	b, err := msgp.AppendIntf(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
