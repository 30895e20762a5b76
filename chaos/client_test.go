//go:build chaos

package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// client speaks HTTP to one address.
type client struct {
	address string
	http    *http.Client
}

func newClient(t *testing.T, address string) *client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 128}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{address, &http.Client{Transport: transport, Timeout: 3 * time.Minute}}
}

// request makes a call with a JSON body ("" = none) and returns the answer unread.
func (c *client) request(method, path, body string, header ...string) (*http.Response, error) {
	req, err := http.NewRequest(method, "http://"+c.address+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return c.http.Do(req)
}

// call makes a call and reads the whole answer.
func (c *client) call(method, path, body string, header ...string) (int, string, error) {
	r, err := c.request(method, path, body, header...)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = r.Body.Close() }() // read to its end or given up
	text, err := io.ReadAll(r.Body)
	return r.StatusCode, string(text), err
}

// want makes a call that must be answered with status, and with an error that holds all these words.
func (c *client) want(status int, method, path, body string, words ...string) error {
	got, text, err := c.call(method, path, body)
	if err != nil {
		return err
	}
	if got != status {
		return fmt.Errorf("%s %s %.200s: %d %.300s, want %d", method, path, body, got, text, status)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			return fmt.Errorf("%s %s %.200s: %d %.300s, want %q in it", method, path, body, got, text, word)
		}
	}
	return nil
}

// must makes a call that must be answered with 200 or 204, and returns the body.
func (c *client) must(t *testing.T, method, path, body string) string {
	t.Helper()
	status, text, err := c.call(method, path, body)
	if err != nil || (status != http.StatusOK && status != http.StatusNoContent) {
		t.Fatalf("%s %s %.200s: %d %.300s, %v", method, path, body, status, text, err)
	}
	return text
}

// stats are the six counters of GET /stats.
type stats struct {
	Received  uint64 `json:"requests_received"`
	Completed uint64 `json:"requests_completed"`
	Failed    uint64 `json:"requests_failed"`
	Aborted   uint64 `json:"requests_aborted"`
	Running   uint64 `json:"running"`
	Waiting   uint64 `json:"waiting"`
}

// closed returns nil if nothing runs and every request has come to exactly one end.
func (s stats) closed() error {
	if s.Running+s.Waiting > 0 || s.Received != s.Completed+s.Failed+s.Aborted {
		return fmt.Errorf("books are open: %+v", s)
	}
	return nil
}

// engine is what GET /engines says of one.
type engine struct {
	Index      int    `json:"index"`
	PID        int    `json:"pid"`
	State      string `json:"state"`
	Restarts   int    `json:"restarts"`
	Generation uint64 `json:"generation"`
	Stats      stats  `json:"stats"`
	Lost       uint64 `json:"lost"`
	Dropped    uint64 `json:"messages_dropped"`
	Held       uint64 `json:"held_bytes"`
	LogDropped uint64 `json:"log_lines_dropped"`
	Reason     string `json:"reason"`
	Lateness   struct {
		Outputs int     `json:"outputs"`
		P50     float64 `json:"p50_ms"`
		P99     float64 `json:"p99_ms"`
	} `json:"lateness"`
}

// engines asks for all engines.
func (p *program) engines(t *testing.T) []engine {
	t.Helper()
	return decode[struct{ Engines []engine }](t, p.control.must(t, "GET", "/engines", "")).Engines
}

// stats asks for the sum of the counters.
func (p *program) stats(t *testing.T) stats {
	t.Helper()
	return decode[stats](t, p.control.must(t, "GET", "/stats", ""))
}

// awaitIdle waits until nothing runs, and returns the counters, which must add up.
func (p *program) awaitIdle(t *testing.T) stats {
	t.Helper()
	var s stats
	proctest.Eventually(t, patience, func() error { s = p.stats(t); return s.closed() })
	return s
}

// awaitRunning waits until so many requests run.
func (p *program) awaitRunning(t *testing.T, n uint64) {
	t.Helper()
	proctest.Eventually(t, patience, func() error {
		if s := p.stats(t); s.Running != n {
			return fmt.Errorf("%+v, want %d running", s, n)
		}
		return nil
	})
}

// awaitState waits for the state of an engine and returns the engine.
func (p *program) awaitState(t *testing.T, within time.Duration, index int, state string) engine {
	t.Helper()
	var e engine
	proctest.Eventually(t, within, func() error {
		if e = p.engines(t)[index]; e.State != state {
			return fmt.Errorf("engine %d is %s (%s), want %s", index, e.State, e.Reason, state)
		}
		return nil
	})
	return e
}

// awaitBack waits until an engine is ready after so many restarts.
func (p *program) awaitBack(t *testing.T, index, restarts int) {
	t.Helper()
	proctest.Eventually(t, patience, func() error {
		if e := p.engines(t)[index]; e.State != "ready" || e.Restarts != restarts {
			return fmt.Errorf("engine %d is %s after %d restarts, want ready after %d", index, e.State, e.Restarts, restarts)
		}
		return nil
	})
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var value T
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%.300q: %v", text, err)
	}
	return value
}
