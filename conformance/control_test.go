//go:build conformance || conformance_python

package conformance

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// stats is the body of GET /stats, over all engines or of one.
type stats struct {
	Received  uint64 `json:"requests_received"`
	Completed uint64 `json:"requests_completed"`
	Failed    uint64 `json:"requests_failed"`
	Aborted   uint64 `json:"requests_aborted"`
	Running   uint64 `json:"running"`
	Waiting   uint64 `json:"waiting"`
}

// engine is one element of GET /engines.
type engine struct {
	Index      int    `json:"index"`
	Rank       int    `json:"rank"`
	PID        int    `json:"pid"`
	State      string `json:"state"`
	Restarts   int    `json:"restarts"`
	Generation int    `json:"generation"`
	Stats      stats  `json:"stats"`
	Lost       uint64 `json:"lost"`
}

// closed returns nil if every request that came in has left and none is inside.
func (s stats) closed() error {
	if s.Running != 0 || s.Waiting != 0 || s.Received != s.Completed+s.Failed+s.Aborted {
		return fmt.Errorf("ledger is open: %+v", s)
	}
	return nil
}

func (s *server) stats(t *testing.T) stats {
	t.Helper()
	return decode[stats](t, s.control.expect(t, http.StatusOK, http.MethodGet, "/stats", ""))
}

// patch changes the configuration of every engine, which must succeed.
func (s *server) patch(t *testing.T, body string) {
	t.Helper()
	s.control.expect(t, http.StatusOK, http.MethodPatch, "/config", body)
}

// fleet returns the engines in the order of their index.
func (s *server) fleet(t *testing.T) []engine {
	t.Helper()
	type list struct {
		Engines []engine `json:"engines"`
	}
	return decode[list](t, s.control.expect(t, http.StatusOK, http.MethodGet, "/engines", "")).Engines
}

// awaitStats polls until check is content with the counts and returns them.
func (s *server) awaitStats(t *testing.T, check func(stats) error) stats {
	t.Helper()
	var got stats
	proctest.Eventually(t, 20*time.Second, func() error {
		got = s.stats(t)
		return check(got)
	})
	return got
}

// awaitRunning polls until exactly n requests run.
func (s *server) awaitRunning(t *testing.T, n uint64) {
	t.Helper()
	s.awaitStats(t, func(got stats) error {
		if got.Running != n {
			return fmt.Errorf("running = %d, want %d: %+v", got.Running, n, got)
		}
		return nil
	})
}

// awaitIdle polls until the ledger is closed and returns it.
func (s *server) awaitIdle(t *testing.T) stats {
	t.Helper()
	return s.awaitStats(t, stats.closed)
}

// awaitState polls until engine index is in the wanted state and returns it.
func (s *server) awaitState(t *testing.T, index int, state string) engine {
	t.Helper()
	var got engine
	proctest.Eventually(t, 20*time.Second, func() error {
		got = s.fleet(t)[index]
		if got.State != state {
			return fmt.Errorf("engine %d: state = %q, want %q", index, got.State, state)
		}
		return nil
	})
	return got
}
