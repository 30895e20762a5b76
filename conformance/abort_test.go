//go:build conformance || conformance_python

package conformance

import (
	"fmt"
	"testing"
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
