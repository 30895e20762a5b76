package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/frontend/engineclient"
	"vllm-vcr/protocol/enginecore"
)

// fleet is a running play whose engines have joined a frontend.
type fleet struct {
	*program
	frontend *engineclient.Frontend
	started  chan struct{} // closed when the first token of any request has come
}

// startFleet runs n engines under a frontend, with 20 ms between two tokens.
func startFleet(t *testing.T, n int, args ...string) *fleet {
	t.Helper()
	f := newFleet(t, n)
	f.program = start(t, nil, append(f.play(n), args...)...)
	f.awaitLog(t, "every engine is ready")
	f.awaitReady(t)
	return f
}

// newFleet has a frontend for n engines, and no program yet.
func newFleet(t *testing.T, n int) *fleet {
	t.Helper()
	f := &fleet{started: make(chan struct{})}
	var first sync.Once
	frontend, err := engineclient.Listen(engineclient.Options{
		Handshake: "tcp://127.0.0.1:0", Engines: n,
		Events: engineclient.Events{Outputs: func(d *engineclient.Delivery) {
			if requests := d.Outputs.Requests; len(requests) > 0 && len(requests[0].Tokens) > 0 {
				first.Do(func() { close(f.started) })
			}
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = frontend.Close(ctx) // with nobody left to flush to
	})
	f.frontend = frontend
	return f
}

// play is the command line for the engines of f.
func (f *fleet) play(n int) []string {
	return []string{"play", "--handshake-address", f.frontend.Handshake(), "--inter-token-latency", "20",
		"--engine-count", fmt.Sprint(n), "--control-address", "127.0.0.1:0"}
}

// awaitReady waits until the frontend has seen every engine.
func (f *fleet) awaitReady(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := f.frontend.Ready(ctx); err != nil {
		t.Fatal(err)
	}
}

// submit gives engine 0 a request of that many tokens and waits for its first.
func (f *fleet) submit(t *testing.T, tokens uint32) {
	t.Helper()
	sampling := enginecore.DefaultSampling()
	sampling.MaxTokens, sampling.IgnoreEOS = tokens, true
	if err := f.frontend.Client(0).Add(0, &enginecore.Request{ID: "r", PromptTokens: []uint32{1, 2, 3}, Sampling: &sampling}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-f.started:
	case <-time.After(patience):
		t.Fatal("no token came")
	}
}

// wantEnd waits for exit code and the end of every process within a limit that counts from now.
func (p *program) wantEnd(t *testing.T, code int, limit time.Duration) {
	t.Helper()
	begin := time.Now()
	if got := p.awaitExit(t, limit); got != code {
		t.Errorf("exit code = %d, want %d", got, code)
	}
	p.awaitNobody(t, limit-time.Since(begin))
}

func TestShutdown_Idle(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			f := startFleet(t, 3, "--shutdown-timeout", "30") // which nobody needs
			f.signal(t, s)
			f.wantEnd(t, 0, time.Second)
			f.awaitLog(t, "fleet stopped")
		})
	}
}

// TestShutdown_Starting ends engines that still wait for their frontend.
func TestShutdown_Starting(t *testing.T) {
	p := start(t, nil, "play", "--handshake-address", nowhere(t), "--engine-count", "3", "--control-address", "127.0.0.1:0")
	p.get(t, "/config") // every worker has answered
	p.signal(t, syscall.SIGTERM)
	p.wantEnd(t, 0, time.Second)
}

// TestShutdown_Drains lets a request run to its end.
func TestShutdown_Drains(t *testing.T) {
	f := startFleet(t, 1, "--shutdown-timeout", "30")
	f.submit(t, 20)
	f.signal(t, syscall.SIGTERM)
	f.wantEnd(t, 0, patience)
	wantLedger(t, f, map[string]any{"received": 1.0, "completed": 1.0, "failed": 0.0, "aborted": 0.0, "lost": 0.0})
}

// TestShutdown_Aborts gives up what has not ended when its time is over.
func TestShutdown_Aborts(t *testing.T) {
	f := startFleet(t, 1) // no time at all
	f.submit(t, 100_000)
	f.signal(t, syscall.SIGTERM)
	f.wantEnd(t, 0, 2*time.Second)
	wantLedger(t, f, map[string]any{"received": 1.0, "completed": 0.0, "failed": 0.0, "aborted": 1.0, "lost": 0.0})
}

func wantLedger(t *testing.T, f *fleet, want map[string]any) {
	t.Helper()
	got := f.awaitLog(t, "fleet stopped")
	for key, n := range want {
		if got[key] != n {
			t.Errorf("%s = %v, want %v", key, got[key], n)
		}
	}
}

// TestShutdown_SecondSignal doesn't wait for the request that is being drained.
func TestShutdown_SecondSignal(t *testing.T) {
	tests := []struct{ first, second syscall.Signal }{
		{syscall.SIGTERM, syscall.SIGTERM},
		{syscall.SIGINT, syscall.SIGTERM},
		{syscall.SIGTERM, syscall.SIGINT},
	}
	for _, tt := range tests {
		t.Run(tt.first.String()+" and "+tt.second.String(), func(t *testing.T) {
			f := startFleet(t, 2, "--shutdown-timeout", "600")
			f.submit(t, 100_000)
			f.signal(t, tt.first)
			f.awaitLog(t, "shutting down")
			f.signal(t, tt.second)
			f.wantEnd(t, 128+int(tt.second), 2*time.Second)
			if want := fmt.Sprintf("error: killed by a second signal: %v", tt.second); !strings.HasSuffix(f.printed(), want) {
				t.Errorf("the last line is not %q", want)
			}
		})
	}
}

// TestKilled leaves no worker behind, whether it works or has been stopped.
func TestKilled(t *testing.T) {
	f := startFleet(t, 3)
	f.submit(t, 100_000)
	pid := firstPID(t, f.get(t, "/engines"))
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := f.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	f.wantEnd(t, -1, 2*time.Second)
}

// firstPID reads the process id of engine 0 out of GET /engines.
func firstPID(t *testing.T, body string) int {
	t.Helper()
	_, rest, _ := strings.Cut(body, `"pid":`)
	var pid int
	if _, err := fmt.Sscanf(rest, "%d", &pid); err != nil || pid <= 1 {
		t.Fatalf("no process id in %s", body)
	}
	return pid
}

// TestStartup_NoFrontend gives up when its time is over.
func TestStartup_NoFrontend(t *testing.T) {
	p := start(t, nil, "play", "--handshake-address", nowhere(t), "--engine-count", "2", "--startup-timeout", "1")
	p.wantEnd(t, 1, patience)
	if want := "error: not ready after 1 s: engine 0, engine 1"; !strings.HasSuffix(p.printed(), want) {
		t.Errorf("the last line is not %q", want)
	}
}

// TestStartup_BadTrace tells of a bad trace before anything starts.
func TestStartup_BadTrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.jsonl")
	good := `{"prompt_tokens": 10, "output_tokens": 2, "ttft_ms": 5, "itl_ms": [1]}`
	if err := os.WriteFile(path, []byte(good+"\n"+`{"prompt_tokens": 10, "output_tokens": 2}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"bad line", []string{"--latency-trace", path}, "error: latency trace " + path + ": line 2: ttft_ms is missing"},
		{"no file", []string{"--latency-trace", path + ".gone"}, "error: latency trace: open " + path + ".gone: no such file or directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := invoke(t, nil, append([]string{"play", "--handshake-address", nowhere(t)}, tt.args...)...)
			r.want(t, 1, tt.want)
			if strings.Contains(r.stderr, "starting") {
				t.Errorf("something was started:\n%s", r.stderr)
			}
		})
	}
}
