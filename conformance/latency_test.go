//go:build conformance

package conformance

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// tolerance is how late a token may reach a client on a machine that other work shares. Too early it may never be.
const tolerance = 100 * time.Millisecond

// pace is what the client of a stream has measured.
type pace struct {
	first time.Duration // from the call to the first text
	gap   time.Duration // median between two texts
	rest  time.Duration // from the first text to the last
}

// measure streams q, which must be answered whole, with one text for each token.
func (s *server) measure(t *testing.T, q question) pace {
	t.Helper()
	start := time.Now()
	got := s.mustAsk(t, q.streamed())
	return got.pace(t, start, q.MaxTokens)
}

// pace reads the times off a whole answer to a call made at start.
func (a answer) pace(t *testing.T, start time.Time, tokens int) pace {
	t.Helper()
	if err := a.complete(1, tokens); err != nil {
		t.Fatal(err)
	}
	if len(a.arrived) < tokens*9/10 {
		t.Fatalf("%d pieces of text for %d tokens: the client cannot see their pace", len(a.arrived), tokens)
	}
	var gaps []time.Duration
	for i, at := range a.arrived[1:] {
		gaps = append(gaps, at.Sub(a.arrived[i]))
	}
	slices.Sort(gaps)
	return pace{
		first: a.arrived[0].Sub(start),
		gap:   gaps[len(gaps)/2],
		rest:  a.arrived[len(a.arrived)-1].Sub(a.arrived[0]),
	}
}

// near returns nil if got is not below want and at most late over it.
func near(what string, got, want, late time.Duration) error {
	if got < want-time.Millisecond || got > want+late { // a gap may look a little short, if the text before came late
		return fmt.Errorf("%s = %v, want %v to %v", what, got, want, want+late)
	}
	return nil
}

// TestLatency patches both knobs and sees them at the client.
func TestLatency(t *testing.T) {
	cases := []struct{ first, gap time.Duration }{
		{0, 20 * time.Millisecond},
		{200 * time.Millisecond, 20 * time.Millisecond},
		{50 * time.Millisecond, 50 * time.Millisecond},
	}
	const tokens = 21
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, engines: 2})
		for _, c := range cases {
			t.Run(fmt.Sprintf("%v and %v", c.first, c.gap), func(t *testing.T) {
				srv.patch(t, fmt.Sprintf(`{"time_to_first_token": %d, "inter_token_latency": %d}`, c.first.Milliseconds(), c.gap.Milliseconds()))
				got := srv.measure(t, completion(tokens))
				if err := near("first token", got.first, c.first, tolerance); err != nil {
					t.Error(err)
				}
				if err := near("median gap", got.gap, c.gap-3*time.Millisecond, 6*time.Millisecond); err != nil {
					t.Error(err)
				}
				// The first text may come late and the last in time, so the whole may look short by as much.
				if want := (tokens - 1) * c.gap; (got.rest - want).Abs() > tolerance {
					t.Errorf("first to last token = %v, want %v ± %v", got.rest, want, tolerance)
				}
			})
		}
	})
}

// TestLatency_PatchWhileRunning shows that a request keeps the pace it was admitted with and that the next one has the new one.
func TestLatency_PatchWhileRunning(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, play: []string{"--inter-token-latency", "50"}})
		start := time.Now()
		old := srv.begin(t, completion(30).streamed())
		srv.awaitRunning(t, 1)
		srv.patch(t, `{"inter_token_latency": 5}`)
		fresh := srv.measure(t, completion(30))
		if got := old.wait(t).pace(t, start, 30); (got.gap - 50*time.Millisecond).Abs() > 5*time.Millisecond {
			t.Errorf("running request: median gap = %v, want 50 ms", got.gap)
		}
		if fresh.gap > 10*time.Millisecond {
			t.Errorf("next request: median gap = %v, want 5 ms", fresh.gap)
		}
	})
}

// TestLatency_Queue has five requests share one slot: the last first token comes after four whole requests and its own wait.
func TestLatency_Queue(t *testing.T) {
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, play: []string{"--max-num-seqs", "1", "--time-to-first-token", "200"}})
		start := time.Now()
		var last time.Duration
		for _, got := range srv.askAll(t, slices.Repeat([]question{completion(3).streamed()}, 5)...) {
			if err := got.complete(1, 3); err != nil {
				t.Fatal(err)
			}
			last = max(last, got.arrived[0].Sub(start))
		}
		if err := near("last first token", last, time.Second, 2*tolerance); err != nil {
			t.Error(err)
		}
	})
}
