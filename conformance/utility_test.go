//go:build conformance || conformance_python

package conformance

import (
	"net/http"
	"strings"
	"testing"
)

// utilityCall is an HTTP call that the server passes on to the engines as a utility call.
type utilityCall struct {
	method, path, body string
	want               string // part of the answer, which must be a 200
}

// utilitySession lists the calls in such an order that each question about a state follows what has set it.
func utilitySession(version string) []utilityCall {
	calls := []utilityCall{
		{http.MethodPost, "/reset_prefix_cache", "", `"success":true`},
		{http.MethodPost, "/reset_prefix_cache?reset_running_requests=true&reset_external=true", "", `"success":true`},
		{http.MethodPost, "/reset_mm_cache", "", ""},
		{http.MethodPost, "/reset_encoder_cache", "", ""},
		{http.MethodGet, "/is_sleeping", "", `"is_sleeping":false`},
		{http.MethodPost, "/sleep?level=1", "", ""},
		{http.MethodGet, "/is_sleeping", "", `"is_sleeping":true`},
		{http.MethodPost, "/wake_up", "", ""},
		{http.MethodGet, "/is_sleeping", "", `"is_sleeping":false`},
		{http.MethodGet, "/is_paused", "", `"is_paused":false`},
		{http.MethodPost, "/pause", "", `"status":"paused"`},
		{http.MethodGet, "/is_paused", "", `"is_paused":true`},
		{http.MethodPost, "/resume", "", `"status":"resumed"`},
		{http.MethodGet, "/is_paused", "", `"is_paused":false`},
		{http.MethodPost, "/collective_rpc", `{"method": "echo", "args": ["x"], "kwargs": {"k": "v"}, "timeout": 5}`, `"results":[`},
	}
	if version == "0.33.0" {
		calls = append(calls,
			utilityCall{http.MethodPost, "/release_kv_cache_memory", "", ""},
			utilityCall{http.MethodPost, "/wake_up?tags=weights&tags=kv_cache", "", `"status":"awake"`})
	}
	return calls
}

// utilities makes every call and then asks for tokens once more. An answer of the wrong type is a 500 at the server, and the types
// differ between the versions.
func (s *server) utilities(t *testing.T) {
	t.Helper()
	for _, c := range utilitySession(s.version) {
		if r := s.http.call(t, c.method, c.path, c.body); r.status != http.StatusOK || !strings.Contains(r.body, c.want) {
			t.Errorf("%s %s: %d %q, want 200 and %q", c.method, c.path, r.status, r.body, c.want)
		}
	}
	if err := s.mustAsk(t, completion(5)).complete(1, 5); err != nil {
		t.Errorf("request after all calls: %v", err)
	}
}
