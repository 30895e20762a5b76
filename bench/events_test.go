package main

import (
	"strings"
	"testing"
)

const chatStream = `data: {"choices":[{"delta":{"role":"assistant","content":""}}]}

: a comment
data:{"choices":[{"delta":{"content":"a"}}]}

data: {"choices":[{"delta":{"content":"\"}\u0022"}}]}

data: {"choices":[{"delta":{},"finish_reason":"length"}]}

data: {"choices":[],"usage":{"prompt_tokens":3,"total_tokens":45,"completion_tokens":42}}

data: [DONE]

`

// TestEvents has the stream cut at every place.
func TestEvents(t *testing.T) {
	for _, stream := range []string{chatStream, strings.ReplaceAll(chatStream, "\n", "\r\n")} {
		for at := range len(stream) {
			e := events{}
			e.reset()
			first, err1 := e.feed([]byte(stream[:at]))
			second, err2 := e.feed([]byte(stream[at:]))
			if err1 != nil || err2 != nil {
				t.Fatalf("cut at %d: %v, %v", at, err1, err2)
			}
			if first+second != 2 || e.content != 2 || e.letters != 4 || e.tokens != 42 || !e.done {
				t.Fatalf("cut at %d: %d and %d events with text, all: %+v; want 2 in all, 4 letters, 42 tokens, done", at, first, second, e)
			}
		}
	}
}

func TestEvents_Refuses(t *testing.T) {
	cases := []struct{ name, stream, want string }{
		{"behind the end", chatStream + "data: {}\n", `"{}" behind the end marker`},
		{"error", `data: {"error": {"code": 500}}` + "\n", `the stream tells of an error: {"error": {"code": 500}}`},
		{"usage", `data: {"choices":[],"usage":{"completion_tokens":many}}` + "\n", "usage: completion_tokens"},
		{"length", strings.Repeat("x", maxEvent+1), "an event of more than 1048576 bytes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := events{}
			if _, err := e.feed([]byte(c.stream)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one that says %q", err, c.want)
			}
		})
	}
}

// FuzzEvents: no stream breaks it, and how it is cut makes no difference.
func FuzzEvents(f *testing.F) {
	f.Add(chatStream, 7)
	f.Add("data: [DONE]\ndata:", 3)
	f.Fuzz(func(t *testing.T, stream string, at int) {
		if at < 0 || at > len(stream) {
			return
		}
		var whole, cut events
		_, err := whole.feed([]byte(stream))
		_, err1 := cut.feed([]byte(stream[:at]))
		if err1 == nil {
			_, err1 = cut.feed([]byte(stream[at:]))
		}
		if (err == nil) != (err1 == nil) || whole.content != cut.content || whole.letters != cut.letters || whole.tokens != cut.tokens || whole.done != cut.done {
			t.Errorf("whole %+v, %v; cut at %d %+v, %v", whole, err, at, cut, err1)
		}
	})
}
