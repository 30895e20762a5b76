//go:build conformance_python

package conformance

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

const (
	// startupLimit bounds the time until frontend and engines are ready; importing torch takes most of it.
	startupLimit = 4 * time.Minute
	// metricLimit bounds the wait for a gauge.
	metricLimit = 10 * time.Second
)

// eachServer runs test against every version of vLLM's Python server.
func eachServer(t *testing.T, test func(t *testing.T, version string)) {
	for _, version := range []string{"0.33.0", "0.27.1"} {
		t.Run(version, func(t *testing.T) { test(t, version) })
	}
}

// pythonPath is the interpreter that can import vLLM.
func pythonPath() string {
	return filepath.Join(cacheFolder(), "python", "venv", "bin", "python")
}

// frontendCommand returns the program and the environment of the Python server of one version: 0.27.1 is laid over the
// environment of 0.33.0.
func frontendCommand(t *testing.T, version string) (argv, env []string) {
	t.Helper()
	env = []string{"VLLM_TARGET_DEVICE=cpu", "CUDA_VISIBLE_DEVICES=", "VLLM_NO_USAGE_STATS=1"}
	if version != "0.33.0" {
		overlay, err := filepath.Abs(filepath.Join(cacheFolder(), "python", "site-"+version))
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, "PYTHONPATH="+overlay)
	}
	return []string{pythonPath(), "-m", "vllm.entrypoints.cli.main"}, env
}

// TestOneEngine takes one server through everything, since starting it costs more than all the rest.
func TestOneEngine(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version})
		t.Run("times", srv.timesAddUp)
		t.Run("gauges", srv.gaugesFollow)
		t.Run("answers", srv.everyForm)
		t.Run("failures", srv.everyFailure)
		t.Run("faults", srv.everyFaultPaced)
		t.Run("utilities", srv.utilities)
		t.Run("disconnects", srv.everyDisconnect)
		srv.frontendReturns(t) // no subtest: the new frontend must outlive it
		t.Run("shutdown", srv.abortAtShutdown)
	})
}

// everyForm asks in every form, several choices and several prompts included.
func (s *server) everyForm(t *testing.T) {
	several := completion(7)
	several.N = 2
	prompts := completion(7)
	prompts.Prompt = []string{"Hello world", "Count to ten"}
	unbounded := completion(0)
	cases := []struct {
		name            string
		question        question
		choices, tokens int
	}{
		{"completion", completion(7), 1, 7},
		{"completion stream", completion(7).streamed(), 1, 7},
		{"chat", chat(7), 1, 7},
		{"chat stream", chat(7).streamed(), 1, 7},
		{"many tokens", completion(1000).streamed(), 1, 1000},
		{"n = 2", several, 2, 7},
		{"n = 2, stream", several.streamed(), 2, 7},
		{"two prompts", prompts, 2, 7},
		{"no max_tokens means 16", unbounded, 1, 16},
		{"no max_tokens means 16, stream", unbounded.streamed(), 1, 16},
	}
	for _, c := range cases {
		if err := s.mustAsk(t, c.question).complete(c.choices, c.tokens); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	s.awaitIdle(t)
}

// everyFailure injects each kind of failure.
func (s *server) everyFailure(t *testing.T) {
	before := s.awaitIdle(t)
	s.patch(t, `{"failure_injection_rate": 1, "failure_types": ["error"]}`)
	if got := s.mustAsk(t, completion(5)); got.status != http.StatusInternalServerError {
		t.Errorf("error: status = %d, want %d", got.status, http.StatusInternalServerError)
	}
	for _, kind := range []string{"length", "repetition"} {
		s.patch(t, fmt.Sprintf(`{"failure_types": [%q]}`, kind))
		if err := s.mustAsk(t, completion(5)).empty(kind); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	s.patch(t, `{"failure_injection_rate": 0}`)
	if got, want := s.awaitIdle(t).Failed, before.Failed+3; got != want {
		t.Errorf("failed = %d, want %d", got, want)
	}
}

// hidesEmptyEnds says that a stream without a token tells nothing of its end: the older server takes it for one that has not begun.
func (s *server) hidesEmptyEnds() bool { return s.version == "0.27.1" }

// everyFaultPaced leaves the server the time to hand tokens on: those that it finds together with an error it throws away.
func (s *server) everyFaultPaced(t *testing.T) {
	s.patch(t, `{"inter_token_latency": 50}`)
	s.everyFault(t)
	s.patch(t, `{"inter_token_latency": 0}`)
}

// everyDisconnect has clients of every form go away.
func (s *server) everyDisconnect(t *testing.T) {
	s.patch(t, `{"inter_token_latency": 20}`)
	several := completion(2000).streamed()
	several.N = 2
	s.disconnect(t, completion(2000))
	s.disconnect(t, completion(2000).streamed())
	s.disconnect(t, chat(2000).streamed())
	s.disconnect(t, several)
	s.patch(t, `{"inter_token_latency": 0}`)
}

// frontendReturns kills the server and starts it again on the same ports.
func (s *server) frontendReturns(t *testing.T) {
	s.frontend.kill(t)
	s.awaitState(t, 0, "reconnecting")
	s.startFrontend(t)
	s.waitReady(t)
	if err := s.mustAsk(t, completion(5)).complete(1, 5); err != nil {
		t.Errorf("after the return: %v", err)
	}
}

// TestTwoEngines has two API servers and a coordinator: every request is answered to the API server that sent it, and the coordinator
// learns the counts of each engine and tells the API servers.
func TestTwoEngines(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		folder, err := os.MkdirTemp("", "vcr") // short: the names of Unix sockets are limited
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(folder) }) // only sockets of processes that have ended
		srv := serve(t, setup{version: version, engines: 2, env: []string{"VLLM_RPC_BASE_PATH=" + folder}})
		t.Run("answers", srv.everyForm)
		t.Run("disconnects", srv.everyDisconnect)
		t.Run("crowd", srv.crowd)
		t.Run("counts", func(t *testing.T) { srv.countsReachCoordinator(t, folder) })
	})
}

// crowd sends more requests than one connection carries, so that both API servers have their part, and both engines.
func (s *server) crowd(t *testing.T) {
	s.patch(t, `{"time_to_first_token": 200}`)
	for i, got := range s.askAll(t, slices.Repeat([]question{completion(20), chat(20).streamed()}, 20)...) {
		if err := got.complete(1, 20); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
	for _, e := range s.fleet(t) {
		if e.Stats.Received == 0 {
			t.Errorf("engine %d has received nothing", e.Index)
		}
	}
	s.awaitIdle(t)
}

// countsReachCoordinator keeps three requests on one engine and one on the other, and reads what the coordinator publishes.
func (s *server) countsReachCoordinator(t *testing.T, folder string) {
	counts := launch(t, "coordinator", nil, pythonPath(), filepath.Join("testdata", "coordinator_counts.py"), folder)
	s.patch(t, `{"time_to_first_token": 60000}`)
	var asked []*inFlight
	for _, rank := range []int{0, 0, 0, 1} {
		asked = append(asked, s.begin(t, completion(5).at(rank)))
	}
	awaitPrinted(t, counts, "[[[0, 3")
	awaitPrinted(t, counts, ", [0, 1")
	for _, f := range asked {
		f.leave()
	}
	s.awaitIdle(t)
	awaitPrinted(t, counts, "[[[0, 0")
	s.patch(t, `{"time_to_first_token": 0}`)
}

// awaitPrinted polls until the last line that p has printed holds text.
func awaitPrinted(t *testing.T, p *process, text string) {
	t.Helper()
	proctest.Eventually(t, 10*time.Second, func() error {
		if last := lastLines(p.printed(t), 1); !strings.Contains(last, text) {
			return fmt.Errorf("%s: last line %q, want %q in it", p.name, last, text)
		}
		return nil
	})
}
