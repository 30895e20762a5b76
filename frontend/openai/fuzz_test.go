package openai

import (
	"errors"
	"testing"

	"github.com/goccy/go-json"

	"vllm-vcr/fuzzlimit"
)

var fuzzSeeds = []string{
	`{"prompt":"Hello","max_tokens":5,"stream":true,"stream_options":{"include_usage":true},"stop":["a"],"logit_bias":{"1":2}}`,
	`{"prompt":[[1,2],[3]],"n":2,"logprobs":2,"echo":true,"structured_outputs":{"json":{"type":"object"}}}`,
	`{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto"}`,
	`{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}],"response_format":{"type":"json_schema","json_schema":{"schema":{}}}}`,
	`{"input":[{"role":"user","content":"x"}],"text":{"format":{"type":"json_object"}}}`,
	`{"token_ids":[1,2],"sampling_params":{"max_tokens":2}}`,
	`{"input":["a",[1,2]],"encoding_format":"base64","dimensions":3,"truncate_prompt_tokens":-1}`,
	`{"prompt":"x","return_token_strs":true}`, `{"tokens":[1,2]}`, `{"lora_name":"a","lora_path":"b","load_inplace":true}`,
	`{"prompt":1e400,"stop":"\ud800"}`, `[`, `{"a":"`, "{\"prompt\":\"\\",
}

// request is what every route does with a body.
type request interface{ Check(Limits) error }

func fuzz(f *testing.F, empty func() request) {
	for _, seed := range fuzzSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		defer fuzzlimit.Watch(t, len(body))()
		r := empty()
		err := Decode(body, r)
		if err == nil {
			err = r.Check(testLimits)
		}
		var own *Error
		if err != nil && (!errors.As(err, &own) || own.Status < 400 || own.Message == "") {
			t.Errorf("error %#v, want an Error with status and message", err)
		}
	})
}

func FuzzCompletion(f *testing.F) { fuzz(f, func() request { return &CompletionRequest{} }) }
func FuzzChat(f *testing.F)       { fuzz(f, func() request { return &ChatRequest{} }) }
func FuzzGenerate(f *testing.F)   { fuzz(f, func() request { return &GenerateRequest{} }) }

func FuzzResponses(f *testing.F) { fuzz(f, func() request { return &responsesAsRequest{} }) }

// responsesAsRequest checks the chat that a ResponsesRequest stands for.
type responsesAsRequest struct{ ResponsesRequest }

func (r *responsesAsRequest) Check(l Limits) error {
	c, err := r.Chat()
	if err != nil {
		return err
	}
	return c.Check(l)
}

func FuzzEmbedding(f *testing.F) { fuzz(f, func() request { return &EmbeddingRequest{} }) }
func FuzzTokenize(f *testing.F)  { fuzz(f, func() request { return &unlimited{&TokenizeRequest{}} }) }
func FuzzLoadLoRA(f *testing.F)  { fuzz(f, func() request { return &unlimited{&LoadLoRARequest{}} }) }

// unlimited is a request that has no limits of the server's to keep.
type unlimited struct{ checked }

type checked interface{ Check() error }

// UnmarshalJSON reads into the request itself.
func (u unlimited) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, u.checked) }

// Check is that of the request.
func (u unlimited) Check(Limits) error { return u.checked.Check() }
