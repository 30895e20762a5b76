//go:build conformance

package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// killWorker ends the process of one engine with SIGKILL, behind the supervisor's back.
func (s *server) killWorker(t *testing.T, index int) {
	t.Helper()
	if err := syscall.Kill(s.fleet(t)[index].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// TestDeath kills one of three engines in the middle of a request: the control API tells of it within a second, the dead one's
// ledger is closed, and the two others serve on.
func TestDeath(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, engines: 3})
		srv.patch(t, `{"inter_token_latency": 20}`)
		srv.begin(t, completion(4000).at(1))
		srv.awaitRunning(t, 1)
		srv.killWorker(t, 1)
		proctest.Eventually(t, time.Second, func() error {
			if r := srv.control.call(t, http.MethodGet, "/config", ""); r.status != http.StatusInternalServerError {
				return fmt.Errorf("GET /config: status = %d, want %d", r.status, http.StatusInternalServerError)
			}
			return nil
		})
		type failure struct {
			Error string `json:"error"`
		}
		r := srv.control.expect(t, http.StatusInternalServerError, http.MethodPatch, "/config", `{"inter_token_latency": 1}`)
		if text := decode[failure](t, r).Error; !strings.Contains(text, "engine 1") {
			t.Errorf("error = %q, want it to name engine 1", text)
		}
		dead := srv.awaitState(t, 1, "dead")
		if want := (stats{Received: 1, Failed: 1}); dead.Stats != want || dead.Lost != 1 {
			t.Errorf("dead engine: stats = %+v, lost = %d, want %+v and 1", dead.Stats, dead.Lost, want)
		}
		for _, rank := range []int{0, 2} {
			if err := srv.mustAsk(t, completion(5).at(rank)).complete(1, 5); err != nil {
				t.Errorf("engine %d: %v", rank, err)
			}
		}
		if err := srv.http.healthy("/health"); err != nil {
			t.Errorf("the server does not notice a silent death, but: %v", err)
		}
		if r := srv.control.call(t, http.MethodGet, "/health", ""); r.status != http.StatusServiceUnavailable {
			t.Errorf("control health: status = %d, want %d: %s", r.status, http.StatusServiceUnavailable, r.body)
		}
	})
}

// TestDeath_Announced shows the other choice: the dead engine's frontend is told, ends its requests and reports ill.
func TestDeath_Announced(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, play: []string{"--announce-death", "--inter-token-latency", "20"}})
		running := srv.begin(t, completion(4000))
		srv.awaitRunning(t, 1)
		srv.killWorker(t, 0)
		if got := running.wait(t); got.status != http.StatusInternalServerError {
			t.Errorf("running request: status = %d, want %d", got.status, http.StatusInternalServerError)
		}
		proctest.Eventually(t, 5*time.Second, func() error {
			if r := srv.http.call(t, http.MethodGet, "/health", ""); r.status != http.StatusServiceUnavailable {
				return fmt.Errorf("frontend health: status = %d, want %d", r.status, http.StatusServiceUnavailable)
			}
			return nil
		})
	})
}

// TestDeath_Restart has a killed engine come back behind a server that never noticed: it serves again, keeps the fleet's
// configuration, and its counters go on.
func TestDeath_Restart(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, engines: 2, play: []string{"--restart", "on-failure"}})
		srv.patch(t, `{"time_to_first_token": 100}`)
		if err := srv.mustAsk(t, completion(5).at(1)).complete(1, 5); err != nil {
			t.Fatalf("before: %v", err)
		}
		before := srv.fleet(t)[1]
		srv.killWorker(t, 1)
		proctest.Eventually(t, 20*time.Second, func() error {
			if e := srv.fleet(t)[1]; e.Restarts != 1 || e.State != "ready" || e.PID == before.PID {
				return fmt.Errorf("engine 1: %+v, want it ready after one restart", e)
			}
			return nil
		})
		got := srv.measure(t, completion(5).at(1))
		if err := near("first token", got.first, 100*time.Millisecond, tolerance); err != nil {
			t.Errorf("configuration after the restart: %v", err)
		}
		if got, want := srv.fleet(t)[1].Stats, (stats{Received: 2, Completed: 2}); got != want {
			t.Errorf("stats = %+v, want %+v", got, want)
		}
	})
}
