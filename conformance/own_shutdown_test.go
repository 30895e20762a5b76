//go:build conformance

package conformance

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// TestOwnShutdown_Drain ends serve with a stream of three seconds open and time to finish it: it comes to its end, and whoever asks
// meanwhile is sent away.
func TestOwnShutdown_Drain(t *testing.T) {
	srv := ownServer(t, 2, "--shutdown-timeout", "30", "--inter-token-latency", "50", "--token-source", "echo")
	q, want := srv.echoed(t, "One two three four five six.", 9)
	running := []*inFlight{srv.begin(t, q.at(0)), srv.begin(t, q.at(1))}
	srv.awaitRunning(t, 2)
	family := proctest.Children(t, srv.engines.cmd.Process.Pid)
	srv.engines.signal(t, syscall.SIGTERM)
	srv.awaitState(t, 0, "draining")
	proctest.Eventually(t, time.Second, func() error {
		return jsonError(srv.http.call(t, http.MethodPost, "/v1/completions", `{"prompt": "x"}`), http.StatusServiceUnavailable)
	})
	if r := srv.http.call(t, http.MethodGet, "/ready", ""); r.status != http.StatusServiceUnavailable {
		t.Errorf("ready while draining: status = %d, want %d", r.status, http.StatusServiceUnavailable)
	}
	for rank, f := range running {
		if err := f.wait(t).exact(want, q.MaxTokens); err != nil {
			t.Errorf("engine %d: running stream: %v", rank, err)
		}
	}
	if code := srv.engines.waitExit(t, 10*time.Second); code != 0 {
		t.Errorf("exit code = %d, want 0", code)
	}
	proctest.AwaitGone(t, 2*time.Second, family...)
}

// TestOwnShutdown_Abort ends serve without time to finish: clients are told, whether they have a stream or not.
func TestOwnShutdown_Abort(t *testing.T) {
	srv := ownServer(t, 2, "--inter-token-latency", "50")
	stream, body := srv.begin(t, completion(4000).streamed()), srv.begin(t, completion(4000))
	srv.awaitRunning(t, 2)
	family := proctest.Children(t, srv.engines.cmd.Process.Pid)
	srv.engines.signal(t, syscall.SIGTERM)
	for name, f := range map[string]*inFlight{"stream": stream, "body": body} {
		<-f.done
		if f.answer.status == 0 {
			t.Errorf("%s: %v, want an answer", name, f.err)
			continue
		}
		if aborted := f.answer.choices[0] != nil && f.answer.choices[0].finish == "abort"; !aborted && f.answer.failure == "" {
			t.Errorf("%s: %+v, %v, want it to tell of its end", name, f.answer, f.err)
		}
	}
	if code := srv.engines.waitExit(t, 10*time.Second); code != 0 {
		t.Errorf("exit code = %d, want 0", code)
	}
	proctest.AwaitGone(t, 2*time.Second, family...)
}

// TestOwnShutdown_Kill kills serve's supervisor: engines and front end go with it.
func TestOwnShutdown_Kill(t *testing.T) {
	srv := ownServer(t, 3)
	family := proctest.Children(t, srv.engines.cmd.Process.Pid)
	if len(family) != 4 {
		t.Errorf("%d children, want three engines and a front end", len(family))
	}
	srv.engines.signal(t, syscall.SIGKILL)
	proctest.AwaitGone(t, 2*time.Second, family...)
}
