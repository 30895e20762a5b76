//go:build conformance

package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestOwnCounts_BeforeTheEnd reads an answer to its last byte and then asks at once what was counted, two thousand times: both the engines and the
// front end have counted it.
func TestOwnCounts_BeforeTheEnd(t *testing.T) {
	srv := ownServer(t, 1)
	forms := []question{completion(3), completion(3).streamed(), chat(2), chat(2).streamed()}
	for i := range 2000 {
		q := forms[i%len(forms)]
		if err := srv.mustAsk(t, q).complete(1, q.MaxTokens); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if got := srv.stats(t).Completed; got != uint64(i)+1 {
			t.Fatalf("request %d: completed = %d at the engines, want %d", i, got, i+1)
		}
		if got := srv.metric(t, "vllm:request_success_total"); got != float64(i)+1 {
			t.Fatalf("request %d: vllm:request_success_total = %v, want %d", i, got, i+1)
		}
	}
}

// TestOwnCounts_Queue has five requests share one slot: the time to the first token counts the wait for the slot, at the server as at the client.
func TestOwnCounts_Queue(t *testing.T) {
	srv := ownServer(t, 1, "--max-num-seqs", "1", "--time-to-first-token", "500")
	start := time.Now()
	var seen float64
	for _, got := range srv.askAll(t, slices.Repeat([]question{completion(3).streamed()}, 5)...) {
		if err := got.complete(1, 3); err != nil {
			t.Fatal(err)
		}
		seen += got.arrived[0].Sub(start).Seconds()
	}
	if seen < 7 || seen > 8.25 {
		t.Errorf("sum of the times to the first token at the clients = %.2f s, want 7.5", seen)
	}
	srv.expectMetric(t, "vllm:time_to_first_token_seconds_sum", 6.75, 8.25)
	srv.expectMetric(t, "vllm:request_queue_time_seconds_sum", 4.5, 5.5)
	srv.expectMetric(t, "vllm:time_to_first_token_seconds_count", 5, 5)
	srv.expectMetric(t, "vllm:request_success_total", 5, 5)
}

// TestOwnCounts_Times compares the front end's histograms with what was configured.
func TestOwnCounts_Times(t *testing.T) { ownServer(t, 1).timesAddUp(t) }

// TestOwnCounts_Gauges has gauges follow before any token has come.
func TestOwnCounts_Gauges(t *testing.T) {
	srv := ownServer(t, 1)
	srv.gaugesFollow(t)
	srv.patch(t, `{"max_num_seqs": 4, "time_to_first_token": 60000}`)
	var flights []*inFlight
	for range 8 {
		flights = append(flights, srv.begin(t, completion(2).streamed()))
	}
	srv.awaitMetric(t, "vllm:num_requests_running", 4)
	srv.awaitMetric(t, "vllm:num_requests_waiting", 4)
	if got := srv.metric(t, "vllm:kv_cache_usage_perc"); got <= 0 || got >= 1 {
		t.Errorf("vllm:kv_cache_usage_perc = %v with 4 requests running, want between 0 and 1", got)
	}
	for _, f := range flights {
		f.leave()
	}
	for _, name := range []string{"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"} {
		srv.awaitMetric(t, name, 0)
	}
}

// TestOwnCounts_Slots looks at the counts as often as it can under 64 clients, while the configuration changes all the time: never do more requests
// run than there are slots, and nothing is left in the end.
func TestOwnCounts_Slots(t *testing.T) {
	const slots, clients, each = 4, 64, 10
	srv := ownServer(t, 1, "--max-num-seqs", fmt.Sprint(slots), "--inter-token-latency", "1")
	var crowd sync.WaitGroup
	faults := make(chan error, clients*each)
	var left atomic.Int64
	left.Store(clients)
	for range clients {
		crowd.Go(func() {
			defer left.Add(-1)
			for range each {
				got, err := srv.ask(t.Context(), completion(4).streamed())
				if err == nil {
					err = got.complete(1, 4)
				}
				if err != nil {
					faults <- err
				}
			}
		})
	}
	looks := 0
	for ; left.Load() > 0; looks++ {
		if got := srv.stats(t); got.Running > slots {
			t.Errorf("running = %d, want at most %d", got.Running, slots)
		}
		srv.patch(t, fmt.Sprintf(`{"inter_token_latency": %d}`, 1+looks%2))
	}
	crowd.Wait()
	close(faults)
	for err := range faults {
		t.Error(err)
	}
	if got, want := srv.awaitIdle(t), (stats{Received: clients * each, Completed: clients * each}); got != want {
		t.Errorf("stats = %+v, want %+v", got, want)
	}
	srv.awaitMetric(t, "vllm:num_requests_running", 0)
	t.Logf("looked %d times", looks)
}

// TestOwnCounts_Failures switches failures on and off: the very next request fails, and the very next succeeds.
func TestOwnCounts_Failures(t *testing.T) {
	srv := ownServer(t, 1)
	for _, streamed := range []bool{false, true} {
		q := completion(5)
		q.Stream = streamed
		srv.patch(t, `{"failure_injection_rate": 1}`)
		if got := srv.mustAsk(t, q); got.status != http.StatusInternalServerError || got.failure == "" {
			t.Errorf("stream %v: status = %d, error = %q, want %d and one", streamed, got.status, got.failure, http.StatusInternalServerError)
		}
		srv.patch(t, `{"failure_injection_rate": 0}`)
		if err := srv.mustAsk(t, completion(5)).complete(1, 5); err != nil {
			t.Errorf("stream %v: after it: %v", streamed, err)
		}
	}
	if got, want := srv.awaitIdle(t), (stats{Received: 4, Completed: 2, Failed: 2}); got != want {
		t.Errorf("stats = %+v, want %+v", got, want)
	}
}
