package frontend

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/protocol/enginecore"
)

func TestTokenize(t *testing.T) {
	a := start(t, &fakeEngines{})
	r := object(t, a.post("/tokenize", `{"model":"tiny","prompt":"How are","return_token_strs":true}`).body)
	want := map[string]any{"count": 2.0, "max_model_len": 4096.0, "tokens": []any{4438.0, 527.0}, "token_strs": []any{"How", " are"}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	r = object(t, a.post("/tokenize", `{"messages":[{"role":"user","content":"Hello"}]}`).body)
	if r["count"] != 4.0 || r["token_strs"] != nil {
		t.Errorf("answer = %v, want 4 tokens", r)
	}
	r = object(t, a.post("/tokenize", `{"prompt":""}`).body)
	if diff := cmp.Diff([]any{}, r["tokens"]); diff != "" {
		t.Errorf("tokens of nothing (-want +got):\n%s", diff)
	}
	wantError(t, a.post("/tokenize", `{}`), 400, "prompt")
	wantError(t, a.post("/tokenize", `{"prompt":"x","model":"y"}`), 404, "`y`")
}

func TestDetokenize(t *testing.T) {
	a := start(t, &fakeEngines{})
	if r := a.post("/detokenize", `{"tokens":[4438,527]}`); r.body != `{"prompt":"How are"}` {
		t.Errorf("answer = %s", r.body)
	}
	wantError(t, a.post("/detokenize", `{"tokens":[100277]}`), 400, "100277")
	wantError(t, a.post("/detokenize", `{"tokens":[-1]}`), 400, "tokens")
	wantError(t, a.post("/detokenize", `{}`), 400, "tokens")
}

func TestGenerate(t *testing.T) {
	engines, got := answers(says("one two", enginecore.FinishLength)...)
	a := start(t, engines)
	r := object(t, a.post("/inference/v1/generate", `{"token_ids":[1,2],"sampling_params":{"max_tokens":2,"trace_decode_token_ids":[606,1403]},"model":"tiny"}`).body)
	if diff := cmp.Diff([]any{606.0, 1403.0}, at(t, r, "choices", 0, "token_ids")); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	if id := r["request_id"].(string); !strings.HasPrefix(id, "generate-tokens-") {
		t.Errorf("id = %q", id)
	}
	if diff := cmp.Diff([]uint32{606, 1403}, (*got)[0].Sampling.TraceDecodeTokenIDs); diff != "" {
		t.Errorf("sent ids (-want +got):\n%s", diff)
	}
	events, done := eventsOf(t, a.post("/inference/v1/generate", `{"token_ids":[1,2],"stream":true,"stream_options":{"include_usage":true}}`).body)
	if len(events) != 3 || !done || at(t, events[1], "choices", 0, "token_ids", 0) != 1403.0 || at(t, events[2], "usage", "total_tokens") != 4.0 {
		t.Errorf("events %v, done %v", events, done)
	}
	wantError(t, a.post("/inference/v1/generate", `{"token_ids":[]}`), 400, "token_ids")
	wantError(t, a.post("/inference/v1/generate", `{"token_ids":[1],"sampling_params":{"stop":"x"}}`), 400, "stop_token_ids")
}

func TestEmbeddings(t *testing.T) {
	engines, got := answers(
		step{stream: 1, chunk: dispatch.Chunk{Pooling: []float32{0, 1, 0}, Finish: enginecore.FinishStop}},
		step{stream: 0, chunk: dispatch.Chunk{Pooling: []float32{0.6, 0, 0.8}, Finish: enginecore.FinishStop}},
	)
	a := start(t, engines)
	r := object(t, a.post("/v1/embeddings", `{"input":["How are","you"]}`).body)
	if diff := cmp.Diff([]any{[]any{0.6, 0.0, 0.8}, []any{0.0, 1.0, 0.0}}, []any{at(t, r, "data", 0, "embedding"), at(t, r, "data", 1, "embedding")}); diff != "" {
		t.Errorf("vectors (-want +got):\n%s", diff)
	}
	if n := at(t, r, "usage", "prompt_tokens"); n != 3.0 {
		t.Errorf("prompt tokens = %v, want 3", n)
	}
	if sent := (*got)[0]; sent.Sampling != nil || string(jsonOf(sent.Pooling)) != `[null,null,null,null,"embed",false,null,null,null,2,null]` {
		t.Errorf("sent %+v, %s", sent.Sampling, jsonOf(sent.Pooling))
	}
	r = object(t, a.post("/v1/embeddings", `{"input":[[1],[2]],"encoding_format":"base64","dimensions":2}`).body)
	raw, err := base64.StdEncoding.DecodeString(at(t, r, "data", 0, "embedding").(string))
	if err != nil || len(raw) != 8 || math.Float32frombits(binary.LittleEndian.Uint32(raw)) != 1 {
		t.Errorf("vector = %v, %v, want [1 0]", raw, err)
	}
	wantError(t, a.post("/v1/embeddings", `{"input":["a","b"],"dimensions":4}`), 400, "dimensions is 4")
	wantError(t, a.post("/v1/embeddings", `{}`), 400, "input")
	wantError(t, a.post("/v1/embeddings", `{"input":"`+strings.Repeat("a ", 5000)+`"}`), 400, "maximum context length")
	wantError(t, a.post("/v1/embeddings", `{"input":"a","encoding_format":"hex"}`), 400, "hex")
	engines, _ = answers(step{chunk: dispatch.Chunk{Tokens: []uint32{1}, Finish: enginecore.FinishLength}})
	wantError(t, start(t, engines).post("/v1/embeddings", `{"input":"a"}`), 500, "no embedding")
}
