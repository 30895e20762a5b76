//go:build conformance

package conformance

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// TestFaults takes every version of vLLM's server through faults in the middle of answers.
func TestFaults(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) { serve(t, setup{version: version}).everyFault(t) })
}

// TestOwnFaults takes our own front end through them.
func TestOwnFaults(t *testing.T) { ownServer(t, 1).everyFault(t) }

// TestFaults_Hang freezes one of two engines for two seconds: the control API finds it well, and the answers of all clients
// come whole, the frozen engine's late.
func TestFaults_Hang(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, engines: 2})
		begin := time.Now()
		srv.fault(t, `{"kind": "hang", "engine": 1, "duration": 2000}`)
		frozen := srv.begin(t, completion(5).at(1))
		if err := srv.mustAsk(t, completion(5).at(0)).complete(1, 5); err != nil {
			t.Errorf("engine 0: %v", err)
		}
		if got := srv.fleet(t)[1].State; got != "ready" {
			t.Errorf("the frozen engine is %q, want ready", got)
		}
		if err := frozen.wait(t).complete(1, 5); err != nil {
			t.Errorf("engine 1: %v", err)
		}
		if took := time.Since(begin); took < 2*time.Second {
			t.Errorf("the frozen engine answered after %v, want at least 2 s", took)
		}
	})
}

// TestFaults_Crash has an engine crash after a request's fifth token, and come back late under the same server: what struck
// does not strike again.
func TestFaults_Crash(t *testing.T) {
	srv := serve(t, setup{version: "0.33.0", engines: 2, play: []string{"--restart", "on-failure"}})
	srv.fault(t, `{"kind": "crash", "engine": 1, "after_tokens": 5}`)
	srv.begin(t, completion(100).streamed().at(1))
	proctest.Eventually(t, 20*time.Second, func() error {
		if got := srv.fleet(t)[1]; got.State != "ready" || got.Restarts != 1 {
			return fmt.Errorf("engine 1 is %q after %d restarts, want ready after 1", got.State, got.Restarts)
		}
		return nil
	})
	if err := srv.mustAsk(t, completion(20).at(1)).complete(1, 20); err != nil {
		t.Errorf("after the crash: %v", err)
	}
	type faults struct {
		Faults  []any             `json:"faults"`
		Applied map[string]uint64 `json:"applied"`
	}
	got := decode[faults](t, srv.control.expect(t, http.StatusOK, http.MethodGet, "/faults", ""))
	if len(got.Faults) != 0 || got.Applied["crash"] != 1 {
		t.Errorf("faults = %+v, want none active and one crash applied", got)
	}
	if got, want := srv.awaitIdle(t), (stats{Received: 2, Completed: 1, Failed: 1}); got != want {
		t.Errorf("stats = %+v, want %+v", got, want)
	}
}
