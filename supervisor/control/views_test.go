package control

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/supervisor"
)

func TestStats(t *testing.T) {
	resets := 0
	fleet := &fakeFleet{
		StatsFunc: func(context.Context) (ipc.Stats, error) {
			return ipc.Stats{Received: 10, Completed: 4, Failed: 3, Aborted: 1, Running: 2}, nil
		},
		EngineStatsFunc: func(_ context.Context, i int) (ipc.Stats, error) { return ipc.Stats{Waiting: uint64(i)}, nil },
		ResetStatsFunc:  func(context.Context) error { resets++; return nil },

		ResetEngineStatsFunc: func(_ context.Context, i int) error { resets += 10 * i; return nil },
	}
	a := start(t, fleet, nil, Options{})
	want := `{"requests_received":10,"requests_completed":4,"requests_failed":3,"requests_aborted":1,"running":2,"waiting":0}`
	if got := a.call(t, "GET", "/stats", ""); got.status != http.StatusOK || got.body != want {
		t.Errorf("answer = %d %s, want 200 %s", got.status, got.body, want)
	}
	if got := a.call(t, "GET", "/engines/2/stats", ""); got.status != http.StatusOK || !strings.HasSuffix(got.body, `"waiting":2}`) {
		t.Errorf("engine 2 = %d %s, want 200 with 2 waiting", got.status, got.body)
	}
	got := a.call(t, "POST", "/stats/reset", "")
	if got.status != http.StatusNoContent || got.body != "" || got.header.Get("Content-Type") != "" || resets != 1 {
		t.Errorf("reset = %d %q (%s), %d resets, want 204, nothing, 1", got.status, got.body, got.header.Get("Content-Type"), resets)
	}
	if got := a.call(t, "POST", "/engines/2/stats/reset", ""); got.status != http.StatusNoContent || got.body != "" || resets != 21 {
		t.Errorf("reset of engine 2 = %d %q, want 204 and nothing, and engine 2 alone asked", got.status, got.body)
	}
}

func TestHealth(t *testing.T) {
	tests := []struct {
		health        supervisor.Health
		status, ready int
		body          string
	}{
		{supervisor.Health{Status: supervisor.HealthStarting}, 200, 503, `{"status":"starting"}`},
		{supervisor.Health{Status: supervisor.HealthOK}, 200, 200, `{"status":"ok"}`},
		{supervisor.Health{Status: supervisor.HealthDraining}, 503, 503, `{"status":"draining"}`},
		{supervisor.Health{Status: supervisor.HealthDegraded, Engines: []supervisor.EngineHealth{{Index: 1, State: supervisor.StateDead, Reason: "signal 9"}}},
			503, 503, `{"status":"degraded","engines":[{"index":1,"state":"dead","reason":"signal 9"}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.health.Status, func(t *testing.T) {
			a := start(t, &fakeFleet{HealthFunc: func(context.Context) supervisor.Health { return tt.health }}, nil, Options{})
			for path, status := range map[string]int{"/health": tt.status, "/health/ready": tt.ready} {
				if got := a.call(t, "GET", path, ""); got.status != status || got.body != tt.body {
					t.Errorf("%s = %d %s, want %d %s", path, got.status, got.body, status, tt.body)
				}
				if got := a.call(t, "HEAD", path, ""); got.status != status || got.body != "" {
					t.Errorf("HEAD %s = %d %q, want %d without a body", path, got.status, got.body, status)
				}
			}
		})
	}
}

// The process lives whatever its engines do: they are not even asked.
func TestHealth_Live(t *testing.T) {
	got := start(t, &fakeFleet{}, nil, Options{}).call(t, "GET", "/health/live", "")
	if got.status != http.StatusOK || got.body != `{"status":"ok"}` {
		t.Errorf("answer = %d %s, want 200 ok", got.status, got.body)
	}
}

func twoEngines(context.Context) []supervisor.EngineStatus {
	return []supervisor.EngineStatus{
		{Index: 0, Rank: 4, PID: 17, State: supervisor.StateReady, Generation: 2, Stats: ipc.Stats{Received: 9, Completed: 8, Running: 1}, HeldSeconds: 1.5, Saturated: true, InputsHigh: 12, Goroutines: 21,
			Lateness: supervisor.Lateness{Outputs: 5, Seconds: 0.25, Buckets: []supervisor.LateBucket{{AtMost: 0.1, Outputs: 3}, {AtMost: 2.5, Outputs: 1}, {AtMost: -1, Outputs: 1}}}},
		{Index: 1, Rank: 5, State: supervisor.StateDead, Restarts: 3, Lost: 2, Dropped: 1, LogDropped: 6, Reason: "signal 9", FaultsApplied: ipc.FaultCounts{3}, FaultsActive: 2},
	}
}

func TestEngines(t *testing.T) {
	got := start(t, &fakeFleet{EnginesFunc: twoEngines}, nil, Options{}).call(t, "GET", "/engines", "")
	for _, says := range []string{
		`{"engines":[{"index":0,"rank":4,"pid":17,"state":"ready","restarts":0,"generation":2,"stats":{"requests_received":9,`,
		`"messages_dropped":1,`, `"faults_applied":{"crash":0,"error":3,"hang":0,`, `"faults_active":2,`, `"reason":"signal 9"}]}`,
	} {
		if got.status != http.StatusOK || !strings.Contains(got.body, says) {
			t.Errorf("answer = %d %s, want 200 with %s", got.status, got.body, says)
		}
	}
}

func TestEngines_Config(t *testing.T) {
	fleet := &fakeFleet{
		EngineConfigFunc: func(_ context.Context, i int) (config.Live, error) {
			return config.Live{MaxNumSeqs: uint64(i)}, nil
		},
		PatchEngineFunc: func(_ context.Context, i int, p config.Patch) (config.Live, error) {
			return p.Apply(config.Default().Live)
		},
		ResetEngineConfigFunc: func(_ context.Context, i int) (config.Live, error) {
			return config.Live{MaxNumSeqs: uint64(10 * i)}, nil
		},
	}
	a := start(t, fleet, nil, Options{})
	if got := a.call(t, "POST", "/engines/2/config/reset", ""); got.status != http.StatusOK || !strings.Contains(got.body, `"max_num_seqs":20,`) {
		t.Errorf("reset = %d %s, want 200 with engine 2's", got.status, got.body)
	}
	if got := a.call(t, "GET", "/engines/2/config", ""); got.status != http.StatusOK || !strings.Contains(got.body, `"max_num_seqs":2,`) {
		t.Errorf("GET = %d %s, want 200 with engine 2's", got.status, got.body)
	}
	if got := a.call(t, "PATCH", "/engines/1/config", `{"max_num_seqs":7}`); got.status != http.StatusOK || !strings.Contains(got.body, `"max_num_seqs":7,`) {
		t.Errorf("PATCH = %d %s, want 200 with 7", got.status, got.body)
	}
	wantError(t, a.call(t, "PATCH", "/engines/1/config", `{"max_num_seqs":0}`), http.StatusBadRequest, "max_num_seqs: 0")
}

// How often the front end was started again is told where there is one.
func TestMetrics_FrontEnd(t *testing.T) {
	for restarts, want := range map[uint64]string{0: "vllm_vcr_front_end_restarts_total 0\n", 3: "vllm_vcr_front_end_restarts_total 3\n"} {
		o := Options{FrontEndRestarts: func() uint64 { return restarts }}
		if got := start(t, &fakeFleet{EnginesFunc: twoEngines}, nil, o).call(t, "GET", "/metrics", ""); !strings.Contains(got.body, want) {
			t.Errorf("no line %q in %s", want, got.body)
		}
	}
	got := start(t, &fakeFleet{EnginesFunc: twoEngines}, nil, Options{}).call(t, "GET", "/metrics", "")
	if strings.Contains(got.body, "front_end") {
		t.Errorf("a front end that there is none: %s", got.body)
	}
}

func TestMetrics(t *testing.T) {
	got := start(t, &fakeFleet{EnginesFunc: twoEngines}, nil, Options{}).call(t, "GET", "/metrics", "")
	if contentType := got.header.Get("Content-Type"); got.status != http.StatusOK || !strings.HasPrefix(contentType, "text/plain; version=0.0.4") {
		t.Errorf("answer = %d %s, want 200 text/plain", got.status, contentType)
	}
	for _, line := range []string{
		"# HELP vllm_vcr_requests_received_total Requests that reached the engine.",
		"# TYPE vllm_vcr_requests_received_total counter",
		`vllm_vcr_requests_received_total{engine="4"} 9`,
		`vllm_vcr_requests_running{engine="4"} 1`,
		`vllm_vcr_requests_lost_total{engine="5"} 2`,
		`vllm_vcr_faults_applied_total{engine="5",kind="error"} 3`,
		`vllm_vcr_faults_applied_total{engine="4",kind="slow_handshake"} 0`,
		`vllm_vcr_faults_active{engine="5"} 2`,
		`vllm_vcr_engine_restarts_total{engine="5"} 3`,
		`vllm_vcr_engine_config_generation{engine="4"} 2`,
		`vllm_vcr_messages_dropped_total{engine="5"} 1`,
		`vllm_vcr_held_output_seconds_total{engine="4"} 1.5`,
		`vllm_vcr_log_lines_dropped_total{engine="5"} 6`,
		`vllm_vcr_goroutines{engine="4"} 21`,
		`vllm_vcr_saturated{engine="4"} 1`,
		`vllm_vcr_saturated{engine="5"} 0`,
		`vllm_vcr_input_queue_high{engine="4"} 12`,
		`vllm_vcr_lateness_seconds_bucket{engine="4",le="0.0001"} 3`,
		`vllm_vcr_lateness_seconds_bucket{engine="4",le="0.0025"} 4`,
		`vllm_vcr_lateness_seconds_bucket{engine="4",le="+Inf"} 5`,
		`vllm_vcr_lateness_seconds_sum{engine="4"} 0.25`,
		`vllm_vcr_engine_state{engine="4",state="ready"} 1`,
		`vllm_vcr_engine_state{engine="4",state="dead"} 0`,
		`vllm_vcr_engine_state{engine="5",state="dead"} 1`,
	} {
		if !strings.Contains(got.body, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	for _, family := range []string{"# TYPE go_goroutines gauge\n", "# TYPE process_resident_memory_bytes gauge\n"} {
		if !strings.Contains(got.body, family) {
			t.Errorf("nothing of the supervisor's own process: no line %s", family)
		}
	}
	helps := strings.Count(got.body, "# HELP vllm_vcr_")
	if helps != len(metrics)+3 || helps != strings.Count(got.body, "# TYPE vllm_vcr_") {
		t.Errorf("%d families are described, want %d", helps, len(metrics)+3)
	}
}
