//go:build conformance

package conformance

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"testing"

	"vllm-vcr/proctest"
)

// likelihood is one entry of a chat's logprobs.
type likelihood struct {
	Token   string       `json:"token"`
	Logprob float64      `json:"logprob"`
	Top     []likelihood `json:"top_logprobs"`
}

// hangsTogether returns nil if what is said of one token can be true: it is among the likeliest where it must be, and probabilities add up to
// less than one. The server of 0.27.1 names a token twice that is both the given and a likely one.
func (l likelihood) hangsTogether(top int) error {
	if l.Logprob >= 0 || len(l.Top) < 1 || len(l.Top) > top+1 {
		return fmt.Errorf("logprob = %v, %d alternatives, want below 0 and 1 to %d", l.Logprob, len(l.Top), top+1)
	}
	named, sum := map[string]bool{}, 0.0
	for _, each := range l.Top {
		if !named[each.Token] {
			sum += math.Exp(each.Logprob)
		}
		named[each.Token] = true
	}
	if sum >= 1 {
		return fmt.Errorf("probabilities add up to %v: %+v", sum, l.Top)
	}
	return nil
}

// TestEngine_Logprobs has vLLM's server show what the engine says of its tokens.
func TestEngine_Logprobs(t *testing.T) {
	type chatAnswer struct {
		Choices []struct {
			Message  struct{ Content string }
			Logprobs struct{ Content []likelihood }
		}
	}
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version})
		for _, top := range []int{0, 1, 5} {
			body := fmt.Sprintf(`{"model": %q, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 500, "logprobs": true, "top_logprobs": %d}`, modelName, top)
			got := decode[chatAnswer](t, srv.http.expect(t, http.StatusOK, http.MethodPost, "/v1/chat/completions", body)).Choices[0]
			if len(got.Logprobs.Content) != 500 {
				t.Errorf("top %d: %d entries, want 500", top, len(got.Logprobs.Content))
			}
			text := ""
			for i, each := range got.Logprobs.Content {
				text += each.Token
				if top == 0 {
					continue
				}
				if err := each.hangsTogether(top); err != nil {
					t.Fatalf("top %d: token %d: %v", top, i, err)
				}
			}
			if text != got.Message.Content {
				t.Errorf("top %d: tokens = %.200q, want the text %.200q", top, text, got.Message.Content)
			}
		}
	})
}

// TestEngine_PromptLogprobs has it show what the engine says of the prompt, beside an echo of it.
func TestEngine_PromptLogprobs(t *testing.T) {
	type completionAnswer struct {
		Choices []struct {
			Text     string
			Logprobs struct {
				Tokens   []string   `json:"tokens"`
				Logprobs []*float64 `json:"token_logprobs"`
			}
			Prompt []map[string]json.RawMessage `json:"prompt_logprobs"`
		}
		Usage usage
	}
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version})
		body := fmt.Sprintf(`{"model": %q, "prompt": "Hello world", "max_tokens": 3, "echo": true, "logprobs": 1, "prompt_logprobs": 1}`, modelName)
		answer := decode[completionAnswer](t, srv.http.expect(t, http.StatusOK, http.MethodPost, "/v1/completions", body))
		got, prompt := answer.Choices[0], answer.Usage.PromptTokens
		if len(got.Prompt) != prompt || got.Prompt[0] != nil {
			t.Errorf("prompt_logprobs = %d entries, the first %v, want %d and none", len(got.Prompt), got.Prompt[0], prompt)
		}
		if len(got.Logprobs.Logprobs) != prompt+3 || got.Logprobs.Logprobs[0] != nil {
			t.Fatalf("logprobs = %d entries, the first %v, want %d and none", len(got.Logprobs.Logprobs), got.Logprobs.Logprobs[0], prompt+3)
		}
		text := got.Logprobs.Tokens[0]
		for i, token := range got.Logprobs.Tokens[1:] {
			text += token
			if p := got.Logprobs.Logprobs[i+1]; p == nil || *p >= 0 {
				t.Errorf("token %d: logprob = %v, want one below 0", i+1, p)
			}
		}
		if text != got.Text {
			t.Errorf("tokens = %q, want the text %q", text, got.Text)
		}
	})
}

// TestEngine_Stops names tokens that end an answer. An engine whose tokens are nobody's choice doesn't end by accident: it gives others in their place, so
// that lengths stay those that were asked for. (The server passes on no tokens to answer with; TestSDK has those.)
func TestEngine_Stops(t *testing.T) {
	type completionAnswer struct {
		Choices []struct {
			TokenIDs []int  `json:"token_ids"`
			Finish   string `json:"finish_reason"`
		}
	}
	const tokens, stops = 1000, 100
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version})
		body, err := json.Marshal(map[string]any{"model": modelName, "prompt": "Hello", "max_tokens": tokens, "return_token_ids": true, "stop_token_ids": upTo(stops)})
		if err != nil {
			t.Fatal(err)
		}
		got := decode[completionAnswer](t, srv.http.expect(t, http.StatusOK, http.MethodPost, "/v1/completions", string(body))).Choices[0]
		if len(got.TokenIDs) != tokens || got.Finish != "length" {
			t.Fatalf("%d tokens, finish = %q, want %d and length", len(got.TokenIDs), got.Finish, tokens)
		}
		if least := slices.Min(got.TokenIDs); least < stops {
			t.Errorf("token %d among the answer's, want none below %d", least, stops)
		}
	})
}

// upTo lists the numbers below n.
func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// TestEngine_CacheUsage sees that a running request holds blocks of the cache, and gives them back.
func TestEngine_CacheUsage(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, play: []string{"--kv-cache-size", "10", "--time-to-first-token", "60000"}})
		running := srv.begin(t, completion(5))
		proctest.Eventually(t, metricLimit, func() error {
			if got := srv.metric(t, "vllm:kv_cache_usage_perc"); got != 0.1 {
				return fmt.Errorf("vllm:kv_cache_usage_perc = %v with one block of ten in use, want 0.1", got)
			}
			return nil
		})
		running.leave()
		srv.awaitMetric(t, "vllm:kv_cache_usage_perc", 0)
	})
}

// TestEngine_LoRAGate has two adapters where one may be in use at a time: requests with the other wait, and go on once the first is free.
func TestEngine_LoRAGate(t *testing.T) {
	folder := t.TempDir()
	srv := serve(t, setup{version: "0.33.0", play: []string{"--max-loras", "1", "--inter-token-latency", "20"},
		env: []string{"VLLM_ALLOW_RUNTIME_LORA_UPDATING=1", "VLLM_RUNTIME_LORA_ALLOWED_PATH_PREFIXES=" + folder}})
	ask := func(adapter string, tokens int) question {
		q := completion(tokens)
		q.Model = adapter
		return q
	}
	for _, name := range []string{"poet", "muse"} {
		body := fmt.Sprintf(`{"lora_name": %q, "lora_path": %q}`, name, folder)
		srv.http.expect(t, http.StatusOK, http.MethodPost, "/v1/load_lora_adapter", body)
	}
	poet := []*inFlight{srv.begin(t, ask("poet", 2000)), srv.begin(t, ask("poet", 2000))}
	srv.awaitRunning(t, 2)
	muse := srv.begin(t, ask("muse", 5))
	base := srv.mustAsk(t, completion(5))
	if err := base.complete(1, 5); err != nil {
		t.Errorf("request without an adapter: %v", err)
	}
	srv.awaitStats(t, func(got stats) error {
		if got.Running != 2 || got.Waiting != 1 {
			return fmt.Errorf("running = %d, waiting = %d, want 2 and 1", got.Running, got.Waiting)
		}
		return nil
	})
	for _, f := range poet {
		f.leave()
	}
	if err := muse.wait(t).complete(1, 5); err != nil {
		t.Errorf("request with the other adapter: %v", err)
	}
	srv.http.expect(t, http.StatusOK, http.MethodPost, "/v1/unload_lora_adapter", `{"lora_name": "poet"}`)
	if got := srv.mustAsk(t, ask("poet", 5)); got.status != http.StatusNotFound {
		t.Errorf("unloaded adapter: status = %d, want %d", got.status, http.StatusNotFound)
	}
}
