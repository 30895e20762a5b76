package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/logs"
	"vllm-vcr/supervisor"
)

func TestSayWaiting(t *testing.T) {
	starting := func(n int) supervisor.Health {
		return supervisor.Health{Status: supervisor.HealthStarting, Engines: make([]supervisor.EngineHealth, n)}
	}
	tests := []struct {
		name   string
		health []supervisor.Health // one after the other, the last for ever
		want   []string            // ends of lines
	}{
		{"ready at once", []supervisor.Health{{Status: supervisor.HealthOK}}, nil},
		{"one by one", []supervisor.Health{starting(3), starting(1), {Status: supervisor.HealthOK}}, []string{"ready=0 engines=3", "ready=2 engines=3"}},
		{"a death is told by others", []supervisor.Health{starting(3), {Status: supervisor.HealthDegraded}, starting(3)}, []string{"ready=0 engines=3"}},
		{"shutdown", []supervisor.Health{{Status: supervisor.HealthDraining}}, nil},
		{"never", []supervisor.Health{starting(3)}, []string{"ready=0 engines=3", "ready=0 engines=3", "ready=0 engines=3", "ready=0 engines=3", "ready=0 engines=3", "ready=0 engines=3"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				root := logs.New(&out, logs.Text, mustFilter(t, "info"))
				calls := 0
				health := func(context.Context) supervisor.Health {
					h := tt.health[min(calls, len(tt.health)-1)]
					calls++
					return h
				}
				cfg := config.Default()
				cfg.EngineCount = 3
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				begin := time.Now()
				sayWaiting(ctx, health, cfg, root.Target(logs.Process))
				if took := time.Since(begin); took != time.Hour {
					t.Errorf("returned after %v, want at the end of its context", took)
				}
				if err := root.Close(); err != nil {
					t.Fatal(err)
				}
				lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
				if out.Len() == 0 {
					lines = nil
				}
				if len(lines) != len(tt.want) {
					t.Fatalf("%d lines, want %d:\n%s", len(lines), len(tt.want), out.String())
				}
				for i, line := range lines {
					if want := `waiting for the frontend address="tcp://127.0.0.1:29550" ` + tt.want[i]; !strings.HasSuffix(line, want) {
						t.Errorf("line %q, want %q", line, want)
					}
				}
			})
		})
	}
}

func mustFilter(t *testing.T, text string) logs.Filter {
	t.Helper()
	f, err := logs.ParseFilter(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
