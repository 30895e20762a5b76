package openai

import (
	"net/http"
	"strings"
	"testing"
)

var testLimits = Limits{MaxModelLen: 1024, MaxLogprobs: 20, Vocabulary: 1000}

func TestCompletionRequest_Check(t *testing.T) {
	for _, c := range []struct{ fields, says string }{ // says "" = let pass
		{``, ""},
		{`"whatever":{"x":1}`, ""},
		{`"temperature":-1`, "temperature must be non-negative, got -1.0"},
		{`"temperature":0`, ""},
		{`"top_p":2`, "top_p must be in (0, 1], got 2.0"},
		{`"top_p":0`, "top_p"},
		{`"top_k":-2`, "top_k"},
		{`"top_k":-1`, ""},
		{`"min_p":1.5`, "min_p"},
		{`"presence_penalty":2.1`, "presence_penalty must be in [-2, 2], got 2.1"},
		{`"frequency_penalty":-3`, "frequency_penalty"},
		{`"repetition_penalty":0`, "repetition_penalty"},
		{`"n":0`, "n must be at least 1"},
		{`"n":1000000`, "at most 2048"},
		{`"n":2048`, ""},
		{`"max_tokens":-5`, "max_tokens must be at least 1, got -5"},
		{`"max_tokens":0`, "max_tokens"},
		{`"max_tokens":0,"echo":true`, ""},
		{`"min_tokens":-1`, "min_tokens"},
		{`"logprobs":21`, "logprobs of 21"},
		{`"logprobs":20`, ""},
		{`"logprobs":-1`, "logprobs of -1"},
		{`"prompt_logprobs":-2`, "prompt_logprobs"},
		{`"prompt_logprobs":1,"stream":true`, "prompt_logprobs"},
		{`"stop":""`, "empty string"},
		{`"stop":["a",""]`, "empty string"},
		{`"stop_token_ids":[5]`, ""},
		{`"stream_options":{"include_usage":true}`, "stream_options"},
		{`"stream_options":{"include_usage":true},"stream":true`, ""},
		{`"logit_bias":{"5":1.5}`, ""},
		{`"logit_bias":{"1000":1}`, "vocabulary"},
		{`"logit_bias":{"x":1}`, "logit_bias"},
		{`"allowed_token_ids":[]`, "allowed_token_ids"},
		{`"allowed_token_ids":[1000]`, "out of vocabulary"},
		{`"suffix":"x"`, "suffix"},
		{`"truncate_prompt_tokens":-2`, "truncate_prompt_tokens"},
		{`"vllm_xargs":[]`, "vllm_xargs"},
		{`"structured_outputs":{"choice":["a"]}`, ""},
		{`"structured_outputs":{"choice":[]}`, "choice"},
		{`"structured_outputs":{}`, "exactly one"},
		{`"structured_outputs":{"choice":["a"],"regex":"b"}`, "exactly one"},
		{`"structured_outputs":{"grammar":"x"}`, "grammar"},
		{`"structured_outputs":{"json":"{\"type\":\"object\"}"}`, ""},
		{`"structured_outputs":{"json":"{"}`, "no JSON"},
		{`"response_format":{"type":"json_object"}`, ""},
		{`"response_format":{"type":"json_schema"}`, "json_schema"},
		{`"response_format":{"type":"json_schema","json_schema":{"schema":[]}}`, "an array"},
		{`"response_format":{"type":"xml"}`, "xml"},
		{`"request_id":"` + strings.Repeat("x", 300) + `"`, "request_id"},
	} {
		var r CompletionRequest
		body := `{"prompt":"x"` + strings.TrimSuffix(","+c.fields, ",") + `}`
		if err := Decode([]byte(body), &r); err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if err := r.Check(testLimits); err == nil != (c.says == "") {
			t.Errorf("%s: %v, want an error with %q", c.fields, err, c.says)
		} else if err != nil {
			wantError(t, err, http.StatusBadRequest, c.says)
		}
	}
}

func TestCompletionRequest_Prompts(t *testing.T) {
	for _, c := range []struct{ body, says string }{
		{`{}`, "prompt must be there"},
		{`{"prompt":[[]]}`, "empty list"},
		{`{"prompt":[` + strings.Repeat(`"a",`, 2048) + `"a"]}`, "2049 entries"},
		{`{"prompt":["a","b"],"n":1025}`, "2050 answers"},
	} {
		var r CompletionRequest
		if err := Decode([]byte(c.body), &r); err != nil {
			t.Fatal(err)
		}
		wantError(t, r.Check(testLimits), http.StatusBadRequest, c.says)
	}
}

func TestCompletionRequest_AnswerTokens(t *testing.T) {
	for _, c := range []struct {
		fields string
		prompt int
		want   int
		says   string
	}{
		{``, 10, 16, ""},
		{``, 1020, 4, ""},
		{``, 1023, 1, ""},
		{``, 1024, 0, "1024 tokens. The prompt has 1024 tokens"},
		{`,"max_tokens":1014`, 10, 1014, ""},
		{`,"max_tokens":1015`, 10, 0, "maximum context length is 1024 tokens. The prompt has 10 tokens and 1015 more"},
		{`,"max_tokens":9223372036854775807`, 10, 0, "9223372036854775807"},
		{`,"max_tokens":0,"echo":true`, 10, 1, ""},
		{`,"min_tokens":17`, 10, 0, "max_tokens=16, got 17"},
	} {
		var r CompletionRequest
		if err := Decode([]byte(`{"prompt":"x"`+c.fields+`}`), &r); err != nil {
			t.Fatal(err)
		}
		got, err := r.AnswerTokens(c.prompt, testLimits)
		if got != c.want || err == nil != (c.says == "") {
			t.Errorf("%s after %d: %d, %v; want %d, %q", c.fields, c.prompt, got, err, c.want, c.says)
		}
		if err != nil {
			wantError(t, err, http.StatusBadRequest, c.says)
		}
	}
}

func TestChatRequest_Check(t *testing.T) {
	tools := `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","title":"T","$defs":{},"anyOf":[]}}}]`
	for _, c := range []struct{ fields, mode, says string }{
		{``, ToolsNone, ""},
		{tools, ToolsAuto, ""},
		{tools + `,"tool_choice":"none"`, ToolsNone, ""},
		{tools + `,"tool_choice":"required"`, ToolsRequired, ""},
		{tools + `,"tool_choice":{"type":"function","function":{"name":"f"}}`, ToolsNamed, ""},
		{tools + `,"tool_choice":{"type":"function","function":{"name":"g"}}`, "", `"g"`},
		{tools + `,"tool_choice":"maybe"`, "", "maybe"},
		{`"tool_choice":"auto"`, "", "only with `tools`"},
		{`"tools":[{"type":"function","function":{}}]`, "", "no name"},
		{`"tools":[{"type":"web"}]`, "", "web"},
		{`"tools":[{"function":{"name":"f","parameters":[]}}]`, "", "an array"},
		{`"top_logprobs":2`, "", "top_logprobs"},
		{`"top_logprobs":2,"logprobs":true`, ToolsNone, ""},
		{`"top_logprobs":21,"logprobs":true`, "", "21"},
		{`"max_completion_tokens":0`, "", "max_completion_tokens"},
	} {
		var r ChatRequest
		body := `{"messages":[{"role":"user","content":"x"}]` + strings.TrimSuffix(","+c.fields, ",") + `}`
		if err := Decode([]byte(body), &r); err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		err := r.Check(testLimits)
		if err != nil {
			wantError(t, err, http.StatusBadRequest, c.says)
		}
		if err == nil != (c.says == "") || err == nil && r.ToolChoice.Mode != c.mode {
			t.Errorf("%s: %v, mode %q; want %q, %q", c.fields, err, r.ToolChoice.Mode, c.says, c.mode)
		}
	}
}

func TestChatRequest_Messages(t *testing.T) {
	for _, c := range []struct{ body, says string }{
		{`{}`, "messages"},
		{`{"messages":[]}`, "messages"},
		{`{"messages":[{"content":"x"}]}`, "role"},
		{`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}`, "image_url"},
	} {
		var r ChatRequest
		if err := Decode([]byte(c.body), &r); err != nil {
			t.Fatal(err)
		}
		wantError(t, r.Check(testLimits), http.StatusBadRequest, c.says)
	}
}

func TestResponsesRequest_Chat(t *testing.T) {
	body := `{"instructions":"be brief","input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},
		{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"1"},
		{"type":"reasoning"}],"tools":[{"type":"function","name":"f","parameters":{}}],"max_output_tokens":3}`
	var r ResponsesRequest
	if err := Decode([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	c, err := r.Chat()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(testLimits); err != nil {
		t.Fatal(err)
	}
	roles := ""
	for _, m := range c.Messages {
		roles += m.Role + " "
	}
	if want := "system user assistant tool "; roles != want || c.ToolChoice.Mode != ToolsAuto {
		t.Errorf("roles %q, tools %q, want %q, auto", roles, c.ToolChoice.Mode, want)
	}
	for _, c := range []struct {
		body   string
		status int
		says   string
	}{
		{`{}`, 400, "input"},
		{`{"input":"x","previous_response_id":"r"}`, 404, "Response with id 'r' not found"},
		{`{"input":"x","background":true}`, 400, "background"},
		{`{"input":"x","max_output_tokens":0}`, 400, "max_output_tokens"},
	} {
		var r ResponsesRequest
		if err := Decode([]byte(c.body), &r); err != nil {
			t.Fatal(err)
		}
		_, err := r.Chat()
		wantError(t, err, c.status, c.says)
	}
}
