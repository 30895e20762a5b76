package frontend

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/frontend/tokenizer"
	"vllm-vcr/fuzzlimit"
	"vllm-vcr/protocol/enginecore"
)

// serve has a server answer a request that came from nowhere.
func serve(t testing.TB, engines Engines, path string, body []byte) (status int, answer []byte) {
	t.Helper()
	s, err := New(engines, vocabulary(), Options{Models: []string{"tiny"}})
	if err != nil {
		t.Fatal(err)
	}
	var ctx fasthttp.RequestCtx
	var req fasthttp.Request
	req.Header.SetMethod(fasthttp.MethodPost)
	req.SetRequestURI(path)
	req.SetBody(body)
	ctx.Init(&req, nil, nil)
	s.http.Handler(&ctx)
	return ctx.Response.StatusCode(), ctx.Response.Body()
}

// FuzzBody sends any body to every route that takes one: the answer is an error in the API's shape, or what the engine said.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		`{"prompt":"Hello","max_tokens":5,"stream":true,"stop":["a"],"logprobs":1,"echo":true,"n":2}`,
		`{"prompt":[[1],[2,3]],"logit_bias":{"1":2},"vllm_xargs":{"a":[1,{"b":null}]},"truncate_prompt_tokens":1}`,
		`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}],"logprobs":true}`,
		`{"messages":[{"role":"odd","content":["x"]}],"response_format":{"type":"json_object"},"stream":true}`,
		`{"input":"x","stream":true,"text":{"format":{"type":"json_object"}},"metadata":{}}`,
		`{"token_ids":[1,2],"sampling_params":{"logprobs":3,"n":2}}`, `{"tokens":[1]}`, `{"lora_name":"a","lora_path":"b"}`, `{`,
	} {
		f.Add([]byte(body))
	}
	paths := []string{"/v1/completions", "/v1/chat/completions", "/v1/responses", "/inference/v1/generate", "/v1/embeddings", "/tokenize", "/detokenize"}
	f.Fuzz(func(t *testing.T, body []byte) {
		defer fuzzlimit.Watch(t, len(body))()
		for _, path := range paths {
			status, answer := serve(t, obedient(t), path, body)
			var e errorBody
			if status != 200 && (json.Unmarshal(answer, &e) != nil || e.Error.Code != status || e.Error.Message == "" || status >= 500) {
				t.Errorf("%s: %d %s, want an error of the client's", path, status, answer)
			}
			if !utf8.Valid(answer) {
				t.Errorf("%s: %q is not UTF-8", path, answer)
			}
		}
	})
}

// obedient is engines that end each answer with its first token, and check what they are asked.
func obedient(t testing.TB) *fakeEngines {
	return &fakeEngines{SubmitFunc: func(requests []dispatch.Request) (Streams, error) {
		var steps []step
		for i := range requests {
			r := &requests[i]
			if len(r.PromptTokens) == 0 || len(r.PromptTokens) > 4096 || r.Sampling != nil && (r.Sampling.MaxTokens < 1 || r.Sampling.MaxTokens > 4096) {
				t.Errorf("asked for %d tokens and %+v", len(r.PromptTokens), r.Sampling)
			}
			_ = enginecore.AppendRequest(nil, enginecore.Version{}, &r.Request) // must not panic
			for range max(1, r.Choices) {
				steps = append(steps, step{stream: len(steps), chunk: dispatch.Chunk{
					Tokens: []uint32{64}, Finish: enginecore.FinishLength, Pooling: []float32{1},
				}})
			}
		}
		return newStreams(steps...), nil
	}}
}

// FuzzStream has an engine answer with any ids, in chunks of any size: every event is JSON in UTF-8, the texts make the text of
// all ids, and the usage counts them.
func FuzzStream(f *testing.F) {
	f.Add([]byte("\x03\x40\x00\x00\xff\xff\x01\x41\x00\x00"), uint8(1), false)
	f.Add([]byte("\xaf\xd3\x00\x9b\xd3\x00\x22\x00\x00\x3c\x00\x00\xde\x00\x00"), uint8(2), true)
	f.Fuzz(func(t *testing.T, data []byte, size uint8, chat bool) {
		defer fuzzlimit.Watch(t, len(data))()
		var ids []uint32
		for ; len(data) >= 3 && len(ids) < 4000; data = data[3:] {
			ids = append(ids, (uint32(data[0])|uint32(data[1])<<8|uint32(data[2])<<16)%tokenizer.Size)
		}
		if len(ids) == 0 {
			return
		}
		engines := &fakeEngines{SubmitFunc: func([]dispatch.Request) (Streams, error) { return newStreams(chunks(ids, int(size))...), nil }}
		path, body, field := "/v1/completions", `{"prompt":"x"`, []any{"choices", 0, "text"}
		if chat {
			path, body, field = "/v1/chat/completions", `{`+hello, []any{"choices", 0, "delta", "content"}
		}
		status, answer := serve(t, engines, path, []byte(body+`,"stream":true,"stream_options":{"include_usage":true},"skip_special_tokens":false,"max_tokens":4000}`))
		events, done := eventsOf(t, string(answer))
		if status != 200 || !done {
			t.Fatalf("%d %s", status, answer)
		}
		text := ""
		for _, e := range events[:len(events)-1] {
			text += at(t, e, field...).(string)
		}
		if want, err := vocabulary().Decode(ids); err != nil || text != want {
			t.Errorf("text = %q, want %q, %v", text, want, err)
		}
		if n := at(t, events[len(events)-1], "usage", "completion_tokens"); n != float64(len(ids)) {
			t.Errorf("completion tokens = %v, want %d", n, len(ids))
		}
	})
}

// chunks is the outputs of an engine that answers with these ids.
func chunks(ids []uint32, size int) []step {
	var steps []step
	for size = max(1, size); len(ids) > 0; {
		n := min(size, len(ids))
		steps = append(steps, step{chunk: dispatch.Chunk{Tokens: ids[:n]}})
		ids = ids[n:]
	}
	steps[len(steps)-1].chunk.Finish = enginecore.FinishLength
	return steps
}
