//go:build conformance || conformance_python

package conformance

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// disconnect starts q, which must be long, and goes away once the engines run it; they must let go of it.
func (s *server) disconnect(t *testing.T, q question) {
	t.Helper()
	before := s.awaitIdle(t)
	n := uint64(max(1, q.N))
	gone := s.begin(t, q)
	s.awaitRunning(t, n)
	gone.leave()
	after := s.awaitStats(t, func(got stats) error {
		if got.Aborted != before.Aborted+n {
			return fmt.Errorf("aborted = %d, want %d", got.Aborted, before.Aborted+n)
		}
		return got.closed()
	})
	if after.Completed != before.Completed {
		t.Errorf("completed = %d, want %d as before", after.Completed, before.Completed)
	}
}

// abortAtShutdown ends the engines, which have no time to drain, with a request running: it is aborted, its client is told, and no
// process is left.
func (s *server) abortAtShutdown(t *testing.T) {
	t.Helper()
	s.patch(t, `{"inter_token_latency": 50}`)
	running := s.begin(t, completion(2000))
	s.awaitRunning(t, 1)
	family := proctest.Children(t, s.engines.cmd.Process.Pid)
	s.engines.signal(t, syscall.SIGTERM)
	got := running.wait(t)
	if got.status != http.StatusOK || got.choices[0] == nil || got.choices[0].finish != "abort" {
		t.Errorf("running request: %+v, want a choice that ended by abort", got)
	}
	if code := s.engines.waitExit(t, 10*time.Second); code != 0 {
		t.Errorf("exit code = %d, want 0", code)
	}
	proctest.AwaitGone(t, 2*time.Second, family...)
}
