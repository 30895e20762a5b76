//go:build conformance

package conformance

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// TestShutdown_Drain ends the engines with a stream open and time to finish it: it comes to its end, whoever asks meanwhile is
// sent away, and the control API says what goes on.
func TestShutdown_Drain(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, engines: 2, play: []string{"--shutdown-timeout", "30", "--inter-token-latency", "50"}})
		var running []*inFlight
		for rank := range 2 {
			running = append(running, srv.begin(t, completion(60).at(rank).streamed()))
		}
		srv.awaitRunning(t, 2)
		family := proctest.Children(t, srv.engines.cmd.Process.Pid)
		srv.engines.signal(t, syscall.SIGTERM)
		srv.awaitState(t, 0, "draining")
		if got := srv.mustAsk(t, completion(5).at(0)); got.choices[0] == nil || got.choices[0].finish != "abort" {
			t.Errorf("asked while draining: %+v, want a choice that ended by abort", got)
		}
		if r := srv.control.call(t, http.MethodGet, "/health/ready", ""); r.status == http.StatusOK {
			t.Errorf("ready while draining: %s", r.body)
		}
		for rank, f := range running {
			if err := f.wait(t).complete(1, 60); err != nil {
				t.Errorf("engine %d: running request: %v", rank, err)
			}
		}
		if code := srv.engines.waitExit(t, 10*time.Second); code != 0 {
			t.Errorf("exit code = %d, want 0", code)
		}
		proctest.AwaitGone(t, 2*time.Second, family...)
	})
}

// TestShutdown_Abort ends the engines without time to finish.
func TestShutdown_Abort(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		serve(t, setup{version: version, engines: 2}).abortAtShutdown(t)
	})
}

// TestShutdown_Twice gives up on a drain: the second signal ends everything at once.
func TestShutdown_Twice(t *testing.T) {
	srv := serve(t, setup{version: "0.33.0", engines: 2, play: []string{"--shutdown-timeout", "60", "--inter-token-latency", "50"}})
	srv.begin(t, completion(2000))
	srv.awaitRunning(t, 1)
	family := proctest.Children(t, srv.engines.cmd.Process.Pid)
	srv.engines.signal(t, syscall.SIGTERM)
	srv.awaitState(t, 0, "draining")
	srv.engines.signal(t, syscall.SIGTERM)
	if code := srv.engines.waitExit(t, 2*time.Second); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code = %d, want %d", code, 128+int(syscall.SIGTERM))
	}
	proctest.AwaitGone(t, 2*time.Second, family...)
}
