//go:build conformance && conformance_load

package conformance

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestAIPerf has NVIDIA's load generator measure serve: it must meet no error, count every token, and see the pace that was set.
func TestAIPerf(t *testing.T) {
	const requests, tokens = 200, 50
	srv := ownServer(t, 3, "--time-to-first-token", "20", "--inter-token-latency", "2")
	out := t.TempDir()
	model, err := filepath.Abs(filepath.Join("testdata", "model-dense"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(environment("aiperf"), "bin", "aiperf"), "profile",
		"--model", modelName, "--url", srv.http.base, "--endpoint-type", "chat", "--streaming", "--tokenizer", model,
		"--concurrency", "16", "--request-count", strconv.Itoa(requests), "--isl", "100", "--osl", strconv.Itoa(tokens),
		"--use-server-token-count", "--no-gpu-telemetry", "--ui", "none", "--artifact-dir", out)
	cmd.Dir = out
	if printed, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("aiperf: %v\n%s", err, lastLines(string(printed), 60))
	}
	got := readReport(t, filepath.Join(out, "profile_export_aiperf.json"))
	if got.Requests.Mean != requests || got.Errors.Mean != 0 || got.Tokens.Mean != requests*tokens {
		t.Errorf("report = %+v, want %d requests, no error, %d tokens", got, requests, requests*tokens)
	}
	if got.Gap.Mean < 1.5 || got.Gap.Mean > 4 {
		t.Errorf("inter-token latency = %v ms, want about 2", got.Gap.Mean)
	}
	if got, want := srv.awaitIdle(t), (stats{Received: requests, Completed: requests}); got != want {
		t.Errorf("stats = %+v, want %+v", got, want)
	}
}

// report is the part of a load generator's results that a test judges.
type report struct {
	Requests figure `json:"request_count"`
	Errors   figure `json:"error_request_count"` // absent if there were none
	Tokens   figure `json:"total_usage_completion_tokens"`
	Gap      figure `json:"inter_token_latency"` // ms
}

type figure struct {
	Mean float64 `json:"avg"`
}

func readReport(t *testing.T, path string) report {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return r
}
