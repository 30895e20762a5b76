//go:build conformance || conformance_python

package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// forms are a request of n tokens in every form.
func forms(n int) map[string]question {
	return map[string]question{
		"completion": completion(n), "completion stream": completion(n).streamed(), "chat": chat(n), "chat stream": chat(n).streamed(),
	}
}

// own gives a request arguments of its own.
func (q question) own(args map[string]any) question {
	q.XArgs = args
	return q
}

// ended returns nil if a is one whole choice of so many tokens that ended for the given reason.
func (a answer) ended(finish string, tokens int) error {
	if a.status != http.StatusOK || !a.whole || a.choices[0] == nil {
		return fmt.Errorf("status = %d, whole = %v, %d choices, error = %q, want 200, true, 1 and none", a.status, a.whole, len(a.choices), a.failure)
	}
	if c := a.choices[0]; c.finish != finish || c.tokens != tokens || a.usage.CompletionTokens != tokens {
		return fmt.Errorf("finish = %q, ids = %d, completion tokens = %d, want %q and %d", c.finish, c.tokens, a.usage.CompletionTokens, finish, tokens)
	}
	return nil
}

// failed returns nil if a is an error of the server, in a stream after so many tokens.
func (a answer) failed(streamed bool, tokens int) error {
	if !streamed && a.status != http.StatusInternalServerError || a.failure == "" {
		return fmt.Errorf("status = %d, error = %q, want a server error", a.status, a.failure)
	}
	if streamed && (a.choices[0] == nil || a.choices[0].tokens != tokens) {
		return fmt.Errorf("choices %+v before the error, want one of %d tokens", a.choices, tokens)
	}
	return nil
}

// fault arms a fault, which must be possible.
func (s *server) fault(t *testing.T, body string) {
	t.Helper()
	s.control.expect(t, http.StatusCreated, http.MethodPost, "/faults", body)
}

// everyFault has faults in the middle of answers of every form: faults of the engine, and such as requests bring. The next
// request is well.
func (s *server) everyFault(t *testing.T) {
	before := s.awaitIdle(t)
	for form, q := range forms(8) {
		check := func(what string, err error) {
			t.Helper()
			if err != nil {
				t.Errorf("%s, %s: %v", form, what, err)
			}
		}
		s.fault(t, `{"kind": "error", "after_tokens": 3}`)
		check("error", s.mustAsk(t, q).failed(q.Stream, 3))
		s.fault(t, `{"kind": "length", "after_tokens": 3}`)
		check("length", s.mustAsk(t, q).ended("length", 3))
		check("own error", s.mustAsk(t, q.own(map[string]any{"fault": "error", "fault_after_tokens": 3})).failed(q.Stream, 3))
		check("own length", s.mustAsk(t, q.own(map[string]any{"fault": "length", "fault_after_tokens": 5})).ended("length", 5))
		if q.Stream && s.hidesEmptyEnds() {
			check("own repetition", s.mustAsk(t, q.own(map[string]any{"fault": "repetition", "fault_after_tokens": 2})).ended("repetition", 2))
		} else {
			check("own repetition", s.mustAsk(t, q.own(map[string]any{"failure_injection_rate": 1, "failure_types": []string{"repetition"}})).empty("repetition"))
		}
		check("none", s.mustAsk(t, q).complete(1, 8))
	}
	if got, want := s.awaitIdle(t), (stats{Received: before.Received + 24, Completed: before.Completed + 4, Failed: before.Failed + 20, Aborted: before.Aborted}); got != want {
		t.Errorf("stats = %+v, want %+v", got, want)
	}
	s.ownTimes(t)
	s.badArgument(t)
}

// ownTimes has a request be slow by its own will, and one beside it not.
func (s *server) ownTimes(t *testing.T) {
	begin := time.Now()
	slow := s.begin(t, completion(3).own(map[string]any{"time_to_first_token": 400, "inter_token_latency": 100, "fault": "stall", "fault_after_tokens": 1, "fault_delay": 200}))
	if err := s.mustAsk(t, completion(3)).complete(1, 3); err != nil {
		t.Error(err)
	}
	if err := slow.wait(t).complete(1, 3); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took < 800*time.Millisecond {
		t.Errorf("the slow request took %v, want at least 800 ms", took)
	}
}

// badArgument has a request fail that sets something for itself which cannot be. From 0.33 on its client is told what.
func (s *server) badArgument(t *testing.T) {
	got := s.mustAsk(t, completion(3).own(map[string]any{"inter_token_latency": "fast"}))
	status, says := http.StatusBadRequest, "want an integer"
	if s.version == "0.27.1" {
		status, says = http.StatusInternalServerError, ""
	}
	if got.status != status || got.failure == "" || !strings.Contains(got.failure, says) {
		t.Errorf("bad argument: status = %d, error = %q, want %d that says %q", got.status, got.failure, status, says)
	}
}
