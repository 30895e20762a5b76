//go:build conformance

package conformance

import (
	"net/http"
	"testing"
)

// TestRejoin kills the server under load and starts it again on the same ports: the engines abort what it had asked for, stay
// under control, and join the new one.
func TestRejoin(t *testing.T) {
	const engines = 2
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, engines: engines})
		srv.patch(t, `{"inter_token_latency": 20}`)
		for rank := range engines {
			srv.begin(t, completion(4000).at(rank).streamed())
		}
		srv.awaitRunning(t, engines)
		before := srv.fleet(t)
		srv.frontend.kill(t)
		for index := range engines {
			srv.awaitState(t, index, "reconnecting")
		}
		if got, want := srv.awaitIdle(t), (stats{Received: engines, Aborted: engines}); got != want {
			t.Errorf("without a frontend: stats = %+v, want %+v", got, want)
		}
		if r := srv.control.call(t, http.MethodGet, "/health", ""); r.status != http.StatusServiceUnavailable {
			t.Errorf("control health: status = %d, want %d: %s", r.status, http.StatusServiceUnavailable, r.body)
		}
		srv.patch(t, `{"inter_token_latency": 1}`)

		srv.startFrontend(t)
		srv.waitReady(t)
		for rank := range engines {
			if err := srv.mustAsk(t, completion(50).at(rank)).complete(1, 50); err != nil {
				t.Errorf("engine %d after the return: %v", rank, err)
			}
		}
		for index, e := range srv.fleet(t) {
			if e.PID != before[index].PID || e.Restarts != 0 {
				t.Errorf("engine %d: pid = %d, restarts = %d, want the same process %d", index, e.PID, e.Restarts, before[index].PID)
			}
		}
	})
}

// TestRejoin_Exit shows the other choice: the engines end with code 1 once their frontend has gone.
func TestRejoin_Exit(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, engines: 2, play: []string{"--on-frontend-loss", "exit"}})
		srv.frontend.kill(t)
		if code := srv.engines.waitExit(t, callLimit/4); code != 1 {
			t.Errorf("exit code = %d, want 1", code)
		}
	})
}
