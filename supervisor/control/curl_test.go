package control

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
)

// The calls of the documentation, sent by curl as a person would.
func TestCurl(t *testing.T) {
	fleet := &fakeFleet{
		ConfigFunc: func(context.Context) (config.Live, error) { return config.Default().Live, nil },
		PatchFunc: func(_ context.Context, p config.Patch) (config.Live, error) {
			return p.Apply(config.Default().Live)
		},
		StatsFunc:      func(context.Context) (ipc.Stats, error) { return ipc.Stats{Received: 3}, nil },
		ResetStatsFunc: func(context.Context) error { return nil },
	}
	a := start(t, fleet, &fakeFilter{filter: "info"}, Options{})
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, 20<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	const json = "Content-Type: application/json"
	tests := []struct {
		name string
		args []string
		want string // what is in the output, which ends in the status
	}{
		{"get", []string{"/config"}, `"max_num_seqs":128`},
		{"patch", []string{"/config", "-X", "PATCH", "-H", json, "-d", `{"time_to_first_token":1000,"inter_token_latency":50}`}, `"inter_token_latency":50`},
		{"patch as curl sends it by default", []string{"/config", "-X", "PATCH", "-d", `{}`}, "415"},
		{"stats", []string{"/stats"}, `"requests_received":3`},
		{"reset", []string{"/stats/reset", "-X", "POST"}, "204"},
		{"log", []string{"/log", "-X", "PUT", "-H", json, "-d", `{"filter":"vllm_vcr::engine=trace,info"}`}, `{"filter":"vllm_vcr::engine=trace,info"}`},
		{"head", []string{"/config", "-I"}, "HTTP/1.1 200 OK"},
		{"20 MB", []string{"/config", "-X", "PATCH", "-H", json, "--data-binary", "@" + large}, "413"},
		{"20 MB without asking first", []string{"/config", "-X", "PATCH", "-H", json, "-H", "Expect:", "--data-binary", "@" + large}, "413"},
		{"20 MB in chunks", []string{"/config", "-X", "PATCH", "-H", json, "-H", "Transfer-Encoding: chunked", "--data-binary", "@" + large}, "413"},
		{"page elsewhere", []string{"/stats/reset", "-X", "POST", "-H", "Origin: http://evil.test"}, "403"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"--silent", "--show-error", "--max-time", "20", "--noproxy", "*", "-w", "\n%{http_code}\n"}, tt.args[1:]...)
			out, err := exec.Command("curl", append(args, "http://"+a.addr+tt.args[0])...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), tt.want) {
				t.Errorf("output = %s (%v), want %s in it", out, err, tt.want)
			}
		})
	}
}
