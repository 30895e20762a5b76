//go:build conformance

package conformance

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// curl runs the real curl against the control API, as the documentation shows it, and returns status and body.
func (s *server) curl(t *testing.T, path string, args ...string) (status int, body string) {
	t.Helper()
	url := fmt.Sprintf("http://127.0.0.1:%d%s", s.ports.control, path)
	out, err := exec.Command("curl", append([]string{"-s", "--max-time", "15", "-w", "\n%{http_code}", url}, args...)...).Output()
	if err != nil {
		t.Fatalf("curl %s %q: %v", path, args, err)
	}
	end := strings.LastIndexByte(string(out), '\n')
	status, err = strconv.Atoi(string(out[end+1:]))
	if err != nil {
		t.Fatalf("curl %s: status: %v", path, err)
	}
	return status, string(out[:end])
}

// curlPatch changes the configuration and reads back the object that came as the answer.
func (s *server) curlPatch(t *testing.T, body string) map[string]any {
	t.Helper()
	status, answer := s.curl(t, "/config", "-X", "PATCH", "-H", "Content-Type: application/json", "-d", body)
	var config map[string]any
	if err := json.Unmarshal([]byte(answer), &config); err != nil || status != 200 {
		t.Fatalf("PATCH %s: %d %s, want 200 and JSON", body, status, answer)
	}
	return config
}

// three starts the fleet of the documentation's examples.
func three(t *testing.T, play ...string) *server {
	t.Helper()
	return serve(t, setup{version: "0.33.0", engines: 3, play: play})
}

// TestCurl_SixSeconds makes every request take about six seconds.
func TestCurl_SixSeconds(t *testing.T) {
	srv := three(t)
	config := srv.curlPatch(t, `{"time_to_first_token": 1000, "inter_token_latency": 50}`)
	if config["time_to_first_token"] != 1000.0 || config["inter_token_latency"] != 50.0 || len(config) != 14 {
		t.Errorf("answer = %v, want all 14 keys with the new values", config)
	}
	start := time.Now()
	for _, got := range srv.askAll(t, slices.Repeat([]question{completion(100)}, 6)...) {
		if err := got.complete(1, 100); err != nil {
			t.Error(err)
		}
	}
	if err := near("six requests at once", time.Since(start), 5950*time.Millisecond, 2*tolerance); err != nil {
		t.Error(err)
	}
}

// TestCurl_Choke lets one request at a time run on each engine, then releases the nine that wait on one of them.
func TestCurl_Choke(t *testing.T) {
	srv := three(t)
	srv.curlPatch(t, `{"max_num_seqs": 1, "inter_token_latency": 100}`)
	var waiting []*inFlight
	for range 10 {
		waiting = append(waiting, srv.begin(t, completion(50).at(0)))
	}
	srv.awaitStats(t, func(got stats) error {
		if got.Running != 1 || got.Waiting != 9 {
			return fmt.Errorf("running = %d, waiting = %d, want 1 and 9", got.Running, got.Waiting)
		}
		return nil
	})
	srv.curlPatch(t, `{"max_num_seqs": 128, "inter_token_latency": 5}`)
	if got := srv.stats(t); got.Running != 10 || got.Waiting != 0 {
		t.Errorf("released: running = %d, waiting = %d, want 10 and 0", got.Running, got.Waiting)
	}
	for i, f := range waiting {
		if err := f.wait(t).complete(1, 50); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

// TestCurl_FailEverything fails every request until told otherwise, then resets, runs and counts.
func TestCurl_FailEverything(t *testing.T) {
	srv := three(t)
	srv.curlPatch(t, `{"failure_injection_rate": 1}`)
	for _, got := range srv.askAll(t, slices.Repeat([]question{completion(5)}, 9)...) {
		if got.status != 500 {
			t.Errorf("status = %d, want 500", got.status)
		}
	}
	srv.curlPatch(t, `{"failure_injection_rate": 0}`)
	if status, body := srv.curl(t, "/stats/reset", "-X", "POST"); status != 204 || body != "" {
		t.Errorf("reset: %d %q, want 204 and nothing", status, body)
	}
	for _, got := range srv.askAll(t, slices.Repeat([]question{completion(5)}, 9)...) {
		if err := got.complete(1, 5); err != nil {
			t.Error(err)
		}
	}
	want := `{"requests_received":9,"requests_completed":9,"requests_failed":0,"requests_aborted":0,"running":0,"waiting":0}`
	if status, body := srv.curl(t, "/stats"); status != 200 || strings.TrimSpace(body) != want {
		t.Errorf("stats: %d %s, want 200 %s", status, body, want)
	}
}

// TestCurl_Log turns on the trace of one target in every process, and off again.
func TestCurl_Log(t *testing.T) {
	srv := three(t)
	put := func(filter string) {
		t.Helper()
		status, body := srv.curl(t, "/log", "-X", "PUT", "-H", "Content-Type: application/json", "-d", fmt.Sprintf(`{"filter": %q}`, filter))
		if want := fmt.Sprintf(`{"filter":%q}`, filter); status != 200 || strings.TrimSpace(body) != want {
			t.Fatalf("PUT /log: %d %s, want 200 %s", status, body, want)
		}
	}
	lines := func() int {
		return strings.Count(srv.engines.printed(t), `"target":"vllm_vcr::engine"`)
	}
	quiet := lines()
	put("vllm_vcr::engine=trace,info")
	srv.mustAsk(t, completion(5))
	proctest.Eventually(t, 5*time.Second, func() error {
		if lines() == quiet {
			return fmt.Errorf("no line of vllm_vcr::engine with its trace on")
		}
		return nil
	})
	put("info")
	if status, body := srv.curl(t, "/log"); status != 200 || strings.TrimSpace(body) != `{"filter":"info"}` {
		t.Errorf("GET /log: %d %s, want 200 and the filter", status, body)
	}
	status, body := srv.curl(t, "/log", "-X", "PUT", "-H", "Content-Type: application/json", "-d", `{"filter": "vllm_vcr=loud"}`)
	if status != 400 || !strings.Contains(body, "invalid log filter") {
		t.Errorf("bad filter: %d %s, want 400 and the reason", status, body)
	}
}

// TestCurl_Stopped freezes one worker: a call is answered with 504 within its deadline, nothing is half-applied, and after
// SIGCONT the fleet is whole again.
func TestCurl_Stopped(t *testing.T) {
	srv := three(t, "--control-timeout", "2")
	frozen := srv.fleet(t)[1].PID
	if err := syscall.Kill(frozen, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	status, body := srv.curl(t, "/config", "-X", "PATCH", "-H", "Content-Type: application/json", "-d", `{"inter_token_latency": 7}`)
	if took := time.Since(start); status != 504 || took > 3*time.Second || !strings.Contains(body, "engine 1") {
		t.Errorf("PATCH: %d %s after %v, want 504 that names engine 1 within 2 s", status, body, took)
	}
	if got := srv.fleet(t)[1].State; got != "frozen" {
		t.Errorf("state = %q, want frozen", got)
	}
	for _, rank := range []int{0, 2} {
		if err := srv.mustAsk(t, completion(5).at(rank)).complete(1, 5); err != nil {
			t.Errorf("engine %d: %v", rank, err)
		}
	}
	if err := syscall.Kill(frozen, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	srv.awaitState(t, 1, "ready")
	for index := range 3 {
		status, body := srv.curl(t, fmt.Sprintf("/engines/%d/config", index))
		if status != 200 || !strings.Contains(body, `"inter_token_latency":0,`) {
			t.Errorf("engine %d: %d %s, want inter_token_latency 0 as before", index, status, body)
		}
	}
	if config := srv.curlPatch(t, `{"inter_token_latency": 8}`); config["inter_token_latency"] != 8.0 {
		t.Errorf("after the thaw: %v, want inter_token_latency 8", config)
	}
}

// TestCurl_SupervisorKilled leaves no process of ours two seconds after a kill −9 of the supervisor.
func TestCurl_SupervisorKilled(t *testing.T) {
	srv := three(t)
	family := proctest.Children(t, srv.engines.cmd.Process.Pid)
	if len(family) != 3 {
		t.Fatalf("children of the supervisor = %d, want 3", len(family))
	}
	srv.engines.signal(t, syscall.SIGKILL)
	proctest.AwaitGone(t, 2*time.Second, append(family, srv.engines.cmd.Process.Pid)...)
}
