//go:build conformance

package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// generation is the answer of /inference/v1/generate.
type generation struct {
	Choices []struct {
		TokenIDs []int  `json:"token_ids"`
		Finish   string `json:"finish_reason"`
	} `json:"choices"`
}

// TestOwnForced has a request say which tokens it is answered with, and which engine answers. Each gets its own, at the pace of the engine.
func TestOwnForced(t *testing.T) {
	srv := ownServer(t, 2, "--inter-token-latency", "5")
	for i := range 8 {
		want := slices.Repeat([]int{1000 + i, 2000 + i, 3000 + i}, 10)
		trace := strings.Join(strings.Fields(fmt.Sprint(want)), ", ")
		body := fmt.Sprintf(`{"token_ids": [1, 2, 3], "sampling_params": {"max_tokens": 30, "trace_decode_token_ids": %s}}`, trace)
		got := decode[generation](t, srv.http.expect(t, http.StatusOK, http.MethodPost, "/inference/v1/generate", body))
		if len(got.Choices) != 1 || got.Choices[0].Finish != "length" {
			t.Fatalf("choices = %+v, want one that ended by its length", got.Choices)
		}
		if diff := cmp.Diff(want, got.Choices[0].TokenIDs); diff != "" {
			t.Errorf("request %d: tokens differ (-want +got):\n%s", i, diff)
		}
	}
	srv.expectMetric(t, "vllm:inter_token_latency_seconds_count", 8*29, 8*29)
	srv.expectMetric(t, "vllm:inter_token_latency_seconds_sum", 8*29*0.0045, 8*29*0.012)
}

// TestOwnLoRA loads an adapter, looks it up, asks it, and unloads it. The metrics tell of it while it runs.
func TestOwnLoRA(t *testing.T) {
	type models struct {
		Data []struct {
			ID     string  `json:"id"`
			Root   string  `json:"root"`
			Parent *string `json:"parent"`
		} `json:"data"`
	}
	srv := ownServer(t, 2)
	ask := completion(5)
	ask.Model = "poet"
	if got := srv.mustAsk(t, ask); got.status != http.StatusNotFound {
		t.Errorf("before it is loaded: status = %d, want %d", got.status, http.StatusNotFound)
	}
	const load = `{"lora_name": "poet", "lora_path": "/adapters/poet"}`
	srv.http.expect(t, http.StatusOK, http.MethodPost, "/v1/load_lora_adapter", load)
	if err := jsonError(srv.http.call(t, http.MethodPost, "/v1/load_lora_adapter", load), http.StatusBadRequest); err != nil {
		t.Errorf("loaded twice: %v", err)
	}
	list := decode[models](t, srv.http.expect(t, http.StatusOK, http.MethodGet, "/v1/models", "")).Data
	if len(list) != 2 || list[1].ID != "poet" || list[1].Root != "/adapters/poet" || list[1].Parent == nil || *list[1].Parent != modelName {
		t.Errorf("models = %+v, want the adapter with its path and its base", list)
	}
	for rank := range 2 {
		if err := srv.mustAsk(t, ask.at(rank)).complete(1, 5); err != nil {
			t.Errorf("engine %d: %v", rank, err)
		}
	}
	srv.http.expect(t, http.StatusOK, http.MethodPost, "/v1/unload_lora_adapter", `{"lora_name": "poet"}`)
	if got := srv.mustAsk(t, ask); got.status != http.StatusNotFound {
		t.Errorf("after it is unloaded: status = %d, want %d", got.status, http.StatusNotFound)
	}
}
