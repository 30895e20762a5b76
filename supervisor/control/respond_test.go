package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/logs"
	"vllm-vcr/supervisor"
)

func TestErrors_Status(t *testing.T) {
	tests := []struct {
		name   string
		err    error
		status int
		says   string
	}{
		{"gone", &supervisor.GoneError{Index: 3, Rank: 11, Reason: "exit code 2"}, 500, "engine 3 (rank 11) is gone: exit code 2"},
		{"silent", &supervisor.SilentError{Index: 0, Rank: 0, Reason: "frozen"}, 504, "engine 0 does not answer: frozen"},
		{"refused", &supervisor.RefusedError{Index: 1, Rank: 1, Reason: "max_num_seqs: a latency trace is in use"}, 409, "latency trace"},
		{"wrapped", fmt.Errorf("prepare: %w", &supervisor.RefusedError{}), 409, "prepare"},
		{"deadline", context.DeadlineExceeded, 504, "no answer within 7s"},
		{"wrapped deadline", fmt.Errorf("queue: %w", context.DeadlineExceeded), 504, "queue"},
		{"other", errors.New("\"quoted\" <b> \xff"), 500, `"quoted" <b>`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fleet := &fakeFleet{
				StatsFunc:       func(context.Context) (ipc.Stats, error) { return ipc.Stats{}, tt.err },
				ResetStatsFunc:  func(context.Context) error { return tt.err },
				PatchFunc:       func(context.Context, config.Patch) (config.Live, error) { return config.Live{}, tt.err },
				EngineStatsFunc: func(context.Context, int) (ipc.Stats, error) { return ipc.Stats{}, tt.err },
			}
			a := start(t, fleet, nil, Options{Timeout: 7 * time.Second})
			wantError(t, a.call(t, "GET", "/stats", ""), tt.status, tt.says)
			wantError(t, a.call(t, "POST", "/stats/reset", ""), tt.status, tt.says)
			wantError(t, a.call(t, "PATCH", "/config", "{}"), tt.status, tt.says)
			wantError(t, a.call(t, "GET", "/engines/1/stats", ""), tt.status, tt.says)
		})
	}
}

// A fleet that never answers costs a call its time-out and no other call anything.
func TestCall_Timeout(t *testing.T) {
	entered := make(chan struct{}, 100)
	fleet := &fakeFleet{
		StatsFunc: func(ctx context.Context) (ipc.Stats, error) {
			entered <- struct{}{}
			<-ctx.Done()
			return ipc.Stats{}, ctx.Err()
		},
		ConfigFunc: func(context.Context) (config.Live, error) { return config.Live{}, nil },
	}
	a := start(t, fleet, nil, Options{Timeout: 300 * time.Millisecond})
	answers := make(chan reply, 100)
	begun := time.Now()
	for range cap(answers) {
		go func() { answers <- a.call(t, "GET", "/stats", "") }()
	}
	for range cap(answers) {
		<-entered
	}
	if got := a.call(t, "GET", "/config", ""); got.status != http.StatusOK {
		t.Errorf("a call beside waiting ones: status = %d, want 200", got.status)
	}
	for range cap(answers) {
		wantError(t, <-answers, http.StatusGatewayTimeout, "within 300ms")
	}
	if took := time.Since(begun); took < 300*time.Millisecond || took > 10*time.Second {
		t.Errorf("the calls took %v, want about 300ms", took)
	}
}

func TestCall_Panic(t *testing.T) {
	var out bytes.Buffer
	filter, err := logs.ParseFilter("info")
	if err != nil {
		t.Fatal(err)
	}
	root := logs.New(&out, logs.JSON, filter)
	fleet := &fakeFleet{
		StatsFunc:  func(context.Context) (ipc.Stats, error) { panic("one bad call") },
		ConfigFunc: func(context.Context) (config.Live, error) { return config.Live{}, nil },
	}
	a := start(t, fleet, nil, Options{Log: root.Target(logs.Control)})
	wantError(t, a.call(t, "GET", "/stats", ""), http.StatusInternalServerError, "panicked")
	if got := a.call(t, "HEAD", "/stats", ""); got.status != http.StatusInternalServerError || got.body != "" {
		t.Errorf("HEAD = %d %q, want 500 without a body", got.status, got.body)
	}
	if got := a.call(t, "GET", "/config", ""); got.status != http.StatusOK {
		t.Errorf("after a panic: status = %d, want 200", got.status)
	}
	if err := root.Close(); err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{`"level":"error","target":"vllm_vcr::control"`, "one bad call", "respond_test.go"} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("log = %s, want %q in it", out.String(), says)
		}
	}
}

func TestShorten(t *testing.T) {
	if got := shorten("short"); got != "short" {
		t.Errorf("shorten = %q, want it unchanged", got)
	}
	long := strings.Repeat("ä", 100)
	if got := shorten(long); len(got) > 130 || !strings.Contains(got, "ä…ä") {
		t.Errorf("shorten = %q, want both ends of whole letters", got)
	}
}
