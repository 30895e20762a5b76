//go:build conformance

package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// utilityCall is an HTTP call that the server passes on to the engines as a utility call.
type utilityCall struct {
	method, path, body string
	want               string // part of the answer, which must be a 200
}

// TestUtilities makes every call in the order of a session, so that each question about a state follows what has set it. An
// answer of the wrong type is a 500 at the server, and the types differ between the two versions.
func TestUtilities(t *testing.T) {
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
	only033 := []utilityCall{
		{http.MethodPost, "/release_kv_cache_memory", "", ""},
		{http.MethodPost, "/wake_up?tags=weights&tags=kv_cache", "", `"status":"awake"`},
	}
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, engines: 2})
		session := calls
		if version == "0.33.0" {
			session = append(session, only033...)
		}
		for _, c := range session {
			if r := srv.http.call(t, c.method, c.path, c.body); r.status != http.StatusOK || !strings.Contains(r.body, c.want) {
				t.Errorf("%s %s: %d %q, want 200 and %q", c.method, c.path, r.status, r.body, c.want)
			}
		}
		if err := srv.mustAsk(t, completion(5)).complete(1, 5); err != nil {
			t.Errorf("request after all calls: %v", err)
		}
	})
}

// TestUtilities_Paused shows that a paused engine of 0.33 sends new requests away until it is resumed.
func TestUtilities_Paused(t *testing.T) {
	srv := serve(t, setup{version: "0.33.0"})
	srv.http.expect(t, http.StatusOK, http.MethodPost, "/pause", "")
	if got := srv.mustAsk(t, completion(5)); got.status != http.StatusServiceUnavailable {
		t.Errorf("paused: status = %d, want %d: %s", got.status, http.StatusServiceUnavailable, got.failure)
	}
	srv.http.expect(t, http.StatusOK, http.MethodPost, "/resume", "")
	if err := srv.mustAsk(t, completion(5)).complete(1, 5); err != nil {
		t.Errorf("resumed: %v", err)
	}
}

// TestUtilities_LoRA loads an adapter, asks it, and unloads it. The server wants to see the adapter's folder; nobody reads it.
func TestUtilities_LoRA(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		folder := t.TempDir()
		srv := serve(t, setup{version: version, engines: 2, play: []string{"--max-loras", "2"},
			env: []string{"VLLM_ALLOW_RUNTIME_LORA_UPDATING=1", "VLLM_RUNTIME_LORA_ALLOWED_PATH_PREFIXES=" + folder}})
		load := fmt.Sprintf(`{"lora_name": "poet", "lora_path": %q}`, folder)
		srv.http.expect(t, http.StatusOK, http.MethodPost, "/v1/load_lora_adapter", load)
		q := completion(5)
		q.Model = "poet"
		if err := srv.mustAsk(t, q).complete(1, 5); err != nil {
			t.Errorf("adapter: %v", err)
		}
		srv.http.expect(t, http.StatusOK, http.MethodPost, "/v1/unload_lora_adapter", `{"lora_name": "poet"}`)
		if got := srv.mustAsk(t, q); got.status != http.StatusNotFound {
			t.Errorf("unloaded adapter: status = %d, want %d", got.status, http.StatusNotFound)
		}
	})
}
