//go:build conformance

package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// ids is a prompt of n tokens.
func ids(n int) []int {
	prompt := make([]int, n)
	for i := range prompt {
		prompt[i] = 9906
	}
	return prompt
}

// promptOf asks for n tokens, 0 = what is left, after a prompt of that many.
func promptOf(prompt, n int) question {
	q := completion(n)
	q.Prompt = ids(prompt)
	return q
}

// TestOwnLimits keeps to the context length: what can't be answered is refused with the numbers that matter, before any header of a stream,
// and what just fits is answered.
func TestOwnLimits(t *testing.T) {
	const limit = 1024
	srv := ownServer(t, 1, "--max-model-len", fmt.Sprint(limit))
	cases := []struct {
		name          string
		prompt, asked int
		names         []string // numbers in the message
	}{
		{"prompt over the limit", 1028, 5, []string{"1024", "1028"}},
		{"prompt that fills it", limit, 1, []string{"1024"}},
		{"prompt that fills it, any length", limit, 0, []string{"1024"}},
		{"more asked for than fits", 1000, 100, []string{"1024", "1000", "100"}},
	}
	for _, c := range cases {
		for _, streamed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %v", c.name, streamed), func(t *testing.T) {
				q := promptOf(c.prompt, c.asked)
				q.Stream = streamed
				start := time.Now()
				got := srv.mustAsk(t, q)
				if took := time.Since(start); took > tolerance {
					t.Errorf("took %v, want at most %v", took, tolerance)
				}
				if got.status != http.StatusBadRequest || !got.whole || got.failure == "" {
					t.Fatalf("status = %d, body read whole = %v, error = %q, want 400 as a body", got.status, got.whole, got.failure)
				}
				for _, number := range c.names {
					if !strings.Contains(got.failure, number) {
						t.Errorf("error = %q, want %s in it", got.failure, number)
					}
				}
			})
		}
	}
	t.Run("room for one", func(t *testing.T) {
		if err := srv.mustAsk(t, promptOf(limit-1, 0)).complete(1, 1); err != nil {
			t.Error(err)
		}
		if err := srv.mustAsk(t, promptOf(limit-5, 5).streamed()).complete(1, 5); err != nil {
			t.Error(err)
		}
	})
	t.Run("one token a thousand times", func(t *testing.T) {
		for range 1000 {
			start := time.Now()
			if err := srv.mustAsk(t, completion(1)).complete(1, 1); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took > tolerance {
				t.Fatalf("took %v, want at most %v", took, tolerance)
			}
		}
	})
}

// TestOwnLimits_Body refuses bodies by their size, and says the limit in bytes.
func TestOwnLimits_Body(t *testing.T) {
	const limit = 4096
	srv := ownServer(t, 1, "--max-body-size", fmt.Sprint(limit))
	fits := fmt.Sprintf(`{"prompt": "x", "max_tokens": 2, "user": %q}`, strings.Repeat("u", limit-100))
	srv.http.expect(t, http.StatusOK, http.MethodPost, "/v1/completions", fits)
	r := srv.http.call(t, http.MethodPost, "/v1/completions", strings.Replace(fits, `"user": "`, `"user": "`+strings.Repeat("u", limit), 1))
	if err := jsonError(r, http.StatusRequestEntityTooLarge); err != nil || !strings.Contains(r.body, "4096") {
		t.Errorf("%v; body = %q, want the limit in it", err, r.body)
	}
}

// TestOwnLimits_Shape sends what is no request at all.
func TestOwnLimits_Shape(t *testing.T) {
	srv := ownServer(t, 1)
	cases := map[string]struct {
		method, path, body string
		status             int
	}{
		"no JSON":        {http.MethodPost, "/v1/completions", `{"prompt": `, http.StatusBadRequest},
		"an array":       {http.MethodPost, "/v1/chat/completions", `[]`, http.StatusBadRequest},
		"null":           {http.MethodPost, "/v1/embeddings", `null`, http.StatusBadRequest},
		"nothing":        {http.MethodPost, "/v1/responses", ``, http.StatusBadRequest},
		"deep nesting":   {http.MethodPost, "/v1/completions", strings.Repeat("[", 200_000), http.StatusBadRequest},
		"invalid UTF-8":  {http.MethodPost, "/v1/completions", "{\"prompt\": \"\xff\"}", http.StatusBadRequest},
		"unknown path":   {http.MethodGet, "/v2/models", "", http.StatusNotFound},
		"trailing slash": {http.MethodGet, "/v1/models/", "", http.StatusNotFound},
		"wrong method":   {http.MethodDelete, "/v1/completions", "", http.StatusMethodNotAllowed},
		"bad logprobs":   {http.MethodPost, "/v1/completions", `{"prompt": "x", "logprobs": -1}`, http.StatusBadRequest},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if err := jsonError(srv.http.call(t, c.method, c.path, c.body), c.status); err != nil {
				t.Error(err)
			}
		})
	}
	if got, want := srv.awaitIdle(t), (stats{}); got != want {
		t.Errorf("stats = %+v, want nothing to have reached the engine", got)
	}
}
