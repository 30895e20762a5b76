//go:build conformance || conformance_python

package conformance

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"vllm-vcr/proctest"
)

// metric returns the sum of all series of one name at the frontend's /metrics.
func (s *server) metric(t *testing.T, name string) float64 {
	t.Helper()
	page := s.http.expect(t, http.StatusOK, http.MethodGet, "/metrics", "").body
	sum, found := 0.0, false
	for lines := bufio.NewScanner(strings.NewReader(page)); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), "} ")
		if !strings.HasPrefix(series, name+"{") {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("metric line %q: %v", lines.Text(), err)
		}
		sum, found = sum+number, true
	}
	if !found {
		t.Fatalf("no metric %s", name)
	}
	return sum
}

// awaitMetric polls until the metric is exactly want.
func (s *server) awaitMetric(t *testing.T, name string, want float64) {
	t.Helper()
	proctest.Eventually(t, metricLimit, func() error {
		if got := s.metric(t, name); got != want {
			return fmt.Errorf("%s = %v, want %v", name, got, want)
		}
		return nil
	})
}

// expectMetric compares a metric with a range.
func (s *server) expectMetric(t *testing.T, name string, least, most float64) {
	t.Helper()
	if got := s.metric(t, name); got < least || got > most {
		t.Errorf("%s = %v, want %v to %v", name, got, least, most)
	}
}

// gaugesFollow has two requests share one slot, with a long first token, and one of them go away: the frontend's gauges, which
// know only what the engine tells, go up before any token has come and back to 0.
func (s *server) gaugesFollow(t *testing.T) {
	t.Helper()
	s.patch(t, `{"max_num_seqs": 1, "time_to_first_token": 60000}`)
	running := s.begin(t, completion(2))
	s.awaitMetric(t, "vllm:num_requests_running", 1)
	waiting := s.begin(t, completion(2))
	s.awaitMetric(t, "vllm:num_requests_waiting", 1)
	waiting.leave()
	s.awaitMetric(t, "vllm:num_requests_waiting", 0)
	s.awaitMetric(t, "vllm:num_requests_running", 1)
	running.leave()
	s.awaitMetric(t, "vllm:num_requests_running", 0)
	s.patch(t, `{"max_num_seqs": 128, "time_to_first_token": 0}`)
}

// timesAddUp sends two requests through one slot and compares what the frontend has made of the engine's time stamps with what
// was configured: 200 ms to the first token, then nine gaps of 20 ms, and the second request waits for the first.
func (s *server) timesAddUp(t *testing.T) {
	t.Helper()
	s.patch(t, `{"max_num_seqs": 1, "time_to_first_token": 200, "inter_token_latency": 20}`)
	for _, got := range s.askAll(t, completion(10), completion(10)) {
		if err := got.complete(1, 10); err != nil {
			t.Fatal(err)
		}
	}
	s.patch(t, `{"max_num_seqs": 128, "time_to_first_token": 0, "inter_token_latency": 0}`)
	const own, slack = 0.2 + 9*0.02, 0.1
	s.expectMetric(t, "vllm:time_to_first_token_seconds_sum", 2*0.2+own-slack, 2*0.2+own+slack)
	s.expectMetric(t, "vllm:request_queue_time_seconds_sum", own-slack, own+slack)
	s.expectMetric(t, "vllm:request_prefill_time_seconds_sum", 2*0.2-slack, 2*0.2+slack)
	s.expectMetric(t, "vllm:request_decode_time_seconds_sum", 2*9*0.02-slack, 2*9*0.02+slack)
	s.expectMetric(t, "vllm:inter_token_latency_seconds_sum", 2*9*0.02-slack, 2*9*0.02+slack)
	s.expectMetric(t, "vllm:generation_tokens_total", 20, 20)
}
