//go:build conformance

package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// exact are the fields that have the same value in the answers of two servers over the same engines; of all others only the kind
// is the same, since texts and ids are the tokenizer's and the moment's.
var exact = []string{"object", "finish_reason", "stop_reason", "index", "role", "completion_tokens", "type", "code", "param", "status"}

// onPurpose are the fields in which vLLM's two servers differ from each other, and ours follows the Python one; docs/differences.md tells
// of them. The keys of top_logprobs are texts of tokens.
var onPurpose = []string{".usage.completion_tokens_details", ".rust_frontend_version", ".choices[0].logprobs.top_logprobs[0]"}

// TestCompare_WithVLLM puts the same requests to vLLM's own server and to ours, over the same engines, and compares the answers field by
// field: the status, every field that vLLM's server gives a value, its kind, and the value of those that don't depend on the tokenizer.
func TestCompare_WithVLLM(t *testing.T) {
	theirs := serve(t, setup{version: "0.33.0"})
	ours := ownServer(t, 1, "--token-source", "random", "--max-model-len", "0")
	requests := map[string]struct{ method, path, body string }{
		"completion":            {"POST", "/v1/completions", `{"model":"` + modelName + `","prompt":"Hello world","max_tokens":5}`},
		"completion, no length": {"POST", "/v1/completions", `{"model":"` + modelName + `","prompt":"Hello world"}`},
		"completion, token ids": {"POST", "/v1/completions", `{"model":"` + modelName + `","prompt":[39,68,71,78],"max_tokens":3}`},
		"completion, logprobs":  {"POST", "/v1/completions", `{"model":"` + modelName + `","prompt":"Hello world","max_tokens":3,"logprobs":2}`},
		"completion, echo":      {"POST", "/v1/completions", `{"model":"` + modelName + `","prompt":"Hello world","max_tokens":3,"echo":true}`},
		"chat":                  {"POST", "/v1/chat/completions", `{"model":"` + modelName + `","messages":[{"role":"user","content":"Hello"}],"max_tokens":5}`},
		"chat, logprobs":        {"POST", "/v1/chat/completions", `{"model":"` + modelName + `","messages":[{"role":"user","content":"Hello"}],"max_tokens":2,"logprobs":true,"top_logprobs":2}`},
		"chat, system":          {"POST", "/v1/chat/completions", `{"model":"` + modelName + `","messages":[{"role":"system","content":"Be brief"},{"role":"user","content":"Hi"}],"max_completion_tokens":4}`},
		"models":                {"GET", "/v1/models", ""},
		"version":               {"GET", "/version", ""},
		"other model":           {"POST", "/v1/completions", `{"model":"nobody","prompt":"Hello","max_tokens":5}`},
		"no JSON":               {"POST", "/v1/completions", `{"model":`},
		"no messages":           {"POST", "/v1/chat/completions", `{"model":"` + modelName + `","messages":[]}`},
		"negative temperature":  {"POST", "/v1/completions", `{"model":"` + modelName + `","prompt":"Hello","temperature":-1}`},
		"top_p above one":       {"POST", "/v1/completions", `{"model":"` + modelName + `","prompt":"Hello","top_p":2}`},
		"too many logprobs":     {"POST", "/v1/completions", `{"model":"` + modelName + `","prompt":"Hello","logprobs":1000}`},
		"health":                {"GET", "/health", ""},
		"tokenize":              {"POST", "/tokenize", `{"model":"` + modelName + `","prompt":"Hello world"}`},
		"detokenize":            {"POST", "/detokenize", `{"model":"` + modelName + `","tokens":[39,68,71]}`},
	}
	for name, r := range requests {
		t.Run(name, func(t *testing.T) {
			a := theirs.http.call(t, r.method, r.path, r.body)
			b := ours.http.call(t, r.method, r.path, r.body)
			if a.status != b.status {
				t.Errorf("status = %d, vLLM's server says %d\nvLLM: %s\nours: %s", b.status, a.status, a.body, b.body)
			}
			for _, difference := range compare("", value(string(a.body)), value(string(b.body))) {
				t.Errorf("%s\nvLLM: %s\nours: %s", difference, a.body, b.body)
			}
		})
	}
}

// value is the JSON of a body, or its text where it is none.
func value(body string) any {
	var v any
	if json.Unmarshal([]byte(body), &v) != nil {
		return body
	}
	return v
}

// compare says where ours lacks something that theirs has.
func compare(path string, theirs, ours any) []string {
	if slices.Contains(onPurpose, path) {
		return nil
	}
	switch a := theirs.(type) {
	case nil:
		return nil
	case map[string]any:
		b, ok := ours.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s: %T, want an object", path, ours)}
		}
		var all []string
		for key, v := range a {
			all = append(all, compare(path+"."+key, v, b[key])...)
		}
		return all
	case []any:
		b, ok := ours.([]any)
		if !ok || len(a) > 0 && len(b) == 0 {
			return []string{fmt.Sprintf("%s: %v, want a list that isn't empty", path, ours)}
		}
		if len(a) == 0 {
			return nil
		}
		return compare(path+"[0]", a[0], b[0])
	}
	if fmt.Sprintf("%T", theirs) != fmt.Sprintf("%T", ours) {
		return []string{fmt.Sprintf("%s: %T %v, want a %T as %v", path, ours, ours, theirs, theirs)}
	}
	if slices.Contains(exact, path[strings.LastIndex(path, ".")+1:]) && theirs != ours {
		return []string{fmt.Sprintf("%s: %v, want %v", path, ours, theirs)}
	}
	return nil
}
