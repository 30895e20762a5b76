//go:build conformance

package conformance

import (
	"fmt"
	"net/http"
	"testing"
)

// TestUtilities makes every utility call that the server offers over two engines.
func TestUtilities(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		serve(t, setup{version: version, engines: 2}).utilities(t)
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

// TestUtilities_LoRA loads an adapter, asks it, and unloads it. The server wants to see the adapter's folder; nobody reads it. A
// server of 0.33 loads none, since the engines say that they support none.
func TestUtilities_LoRA(t *testing.T) {
	folder := t.TempDir()
	srv := serve(t, setup{version: "0.27.1", engines: 2,
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
}
