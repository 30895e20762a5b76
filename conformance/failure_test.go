//go:build conformance

package conformance

import (
	"net/http"
	"testing"
)

// TestFailureInjection turns each kind of failure on and off and sees what a client of the frontend is told.
func TestFailureInjection(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, engines: 2})
		forms := map[string]question{
			"completion": completion(5), "completion stream": completion(5).streamed(),
			"chat": chat(5), "chat stream": chat(5).streamed(),
		}
		for form, q := range forms {
			srv.patch(t, `{"failure_injection_rate": 1, "failure_types": ["error"]}`)
			got := srv.mustAsk(t, q)
			if wrong := !q.Stream && got.status != http.StatusInternalServerError; wrong || got.failure == "" {
				t.Errorf("%s, error: status = %d, error = %q, want a server error", form, got.status, got.failure)
			}
			srv.patch(t, `{"failure_types": ["length"]}`)
			if err := srv.mustAsk(t, q).empty("length"); err != nil {
				t.Errorf("%s, length: %v", form, err)
			}
			srv.patch(t, `{"failure_types": ["repetition"]}`)
			if err := srv.mustAsk(t, q).empty("repetition"); err != nil {
				t.Errorf("%s, repetition: %v", form, err)
			}
			srv.patch(t, `{"failure_injection_rate": 0}`)
			if err := srv.mustAsk(t, q).complete(1, 5); err != nil {
				t.Errorf("%s, rate 0: %v", form, err)
			}
		}
		if got, want := srv.awaitIdle(t), (stats{Received: 16, Completed: 4, Failed: 12}); got != want {
			t.Errorf("stats = %+v, want %+v", got, want)
		}
	})
}

// hidesEmptyEnds says that a stream without a token tells nothing of its end.
func (s *server) hidesEmptyEnds() bool { return false }
