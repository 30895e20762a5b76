package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// What control calls have to keep. A call may take a second more than the time-out it is told: that is the machine's.
const (
	controlP99   = 250 * time.Millisecond
	controlLimit = 6 * time.Second
)

// control is a client of one fleet's control API.
type control struct {
	base   string
	client *http.Client

	frozen atomic.Int32 // faults at work that keep an engine from answering: calls are not timed meanwhile
	mu     sync.Mutex
	times  []time.Duration
	worst  time.Duration // of all calls
	calls  int
}

func newControl(address string) *control {
	return &control{base: "http://" + address, client: &http.Client{Timeout: 2 * controlLimit, Transport: &http.Transport{}}}
}

// stats are the counters of an engine, or of all.
type stats struct {
	Received  uint64 `json:"requests_received"`
	Completed uint64 `json:"requests_completed"`
	Failed    uint64 `json:"requests_failed"`
	Aborted   uint64 `json:"requests_aborted"`
	Running   uint64 `json:"running"`
	Waiting   uint64 `json:"waiting"`
}

// engine is one entry of GET /engines.
type engine struct {
	Index      int    `json:"index"`
	PID        int    `json:"pid"`
	State      string `json:"state"`
	Restarts   uint64 `json:"restarts"`
	Generation uint64 `json:"generation"`
	Stats      stats  `json:"stats"`
	Lost       uint64 `json:"lost"`
	Goroutines int    `json:"goroutines"`
}

// call makes one call and returns the answer's status and body. A connection that was opened in reserve and left unused is answered with
// 408 in the end, which may cross with the next call over it: that is made again.
func (c *control) call(ctx context.Context, method, path, body string) (int, []byte, error) {
	status, text, err := c.callOnce(ctx, method, path, body)
	if err == nil && status == http.StatusRequestTimeout {
		return c.callOnce(ctx, method, path, body)
	}
	return status, text, err
}

func (c *control) callOnce(ctx context.Context, method, path, body string) (int, []byte, error) {
	q, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	quiet := c.frozen.Load() == 0
	start := time.Now()
	a, err := c.client.Do(q)
	if err != nil {
		return 0, nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	c.enter(time.Since(start), quiet && c.frozen.Load() == 0)
	return a.StatusCode, text, err
}

func (c *control) enter(took time.Duration, timed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	c.worst = max(c.worst, took)
	if timed {
		c.times = append(c.times, took)
	}
}

// ask makes a call that must succeed and reads its answer into v.
func (c *control) ask(ctx context.Context, method, path, body string, v any) error {
	status, text, err := c.call(ctx, method, path, body)
	if err != nil {
		return err
	}
	if status >= 300 {
		return fmt.Errorf("%s %s: status %d: %.300s", method, path, status, text)
	}
	if v == nil || len(text) == 0 {
		return nil
	}
	return json.Unmarshal(text, v)
}

func (c *control) engines(ctx context.Context) ([]engine, error) {
	var list struct{ Engines []engine }
	err := c.ask(ctx, http.MethodGet, "/engines", "", &list)
	return list.Engines, err
}

// goroutines reads how many the server's process has.
func (c *control) goroutines(ctx context.Context) (int, error) {
	status, text, err := c.call(ctx, http.MethodGet, "/metrics", "")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "go_goroutines "); ok {
			return strconv.Atoi(strings.TrimSpace(n))
		}
	}
	return 0, fmt.Errorf("GET /metrics: status %d, no go_goroutines in it", status)
}

// probe makes calls until ctx ends, as somebody who watches a fleet does. Dead and frozen engines give errors, which is right.
func (c *control) probe(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch i % 3 {
		case 0:
			_, _, _ = c.call(ctx, http.MethodGet, "/stats", "")
		case 1:
			_, _, _ = c.call(ctx, http.MethodGet, "/config", "")
		default:
			_, _, _ = c.call(ctx, http.MethodPatch, "/config", `{"log_requests": false}`)
		}
	}
}

// p99 is the time within which 99 of 100 calls were answered.
func (c *control) p99() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(c.times))
	return sorted[(len(sorted)-1)*99/100]
}

// judge says which of its promises the API has not kept.
func (c *control) judge() error {
	c.mu.Lock()
	worst, calls := c.worst, c.calls
	c.mu.Unlock()
	if p := c.p99(); p > controlP99 || worst > controlLimit {
		return fmt.Errorf("control calls at %s: p99 %v of %d, the slowest %v; want at most %v and %v", c.base, p, calls, worst, controlP99, controlLimit)
	}
	return nil
}
