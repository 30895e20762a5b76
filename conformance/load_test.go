//go:build conformance

package conformance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestLoad has 200 clients ask ten times each, one after the other, and go away from a third of it at a moment of chance. Every answer
// that was waited for is whole, and the books balance to the last request.
func TestLoad(t *testing.T) {
	const clients, each = 200, 10
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, engines: 3, play: []string{"--max-num-seqs", "64",
			"--time-to-first-token", "50", "--time-to-first-token-std-dev", "20",
			"--inter-token-latency", "5", "--inter-token-latency-std-dev", "1"}})
		var crowd sync.WaitGroup
		var stayed atomic.Uint64
		faults := make(chan error, clients*each)
		for i := range uint64(clients) {
			crowd.Go(func() {
				rng := rand.New(rand.NewPCG(1, i))
				for range each {
					here, err := srv.visit(rng)
					stayed.Add(here)
					if err != nil {
						faults <- fmt.Errorf("client %d: %w", i, err)
					}
				}
			})
		}
		crowd.Wait()
		close(faults)
		for err := range faults {
			t.Error(err)
		}
		got := srv.awaitIdle(t)
		if got.Failed != 0 || got.Received > clients*each || got.Completed < stayed.Load() || got.Aborted == 0 {
			t.Errorf("stats = %+v, want at most %d received, at least %d completed, some aborted, none failed", got, clients*each, stayed.Load())
		}
		t.Logf("%d of %d requests were waited for; %+v", stayed.Load(), clients*each, got)
	})
}

// visit asks for a random number of tokens and returns 1 if it stayed for the answer, which must then be whole, and 0 if it lost
// patience before.
func (s *server) visit(rng *rand.Rand) (stayed uint64, err error) {
	q, patience := completion(1+rng.IntN(100)), callLimit
	if rng.IntN(2) == 0 {
		q = q.streamed()
	}
	if rng.IntN(3) == 0 {
		patience = time.Duration(rng.IntN(500)) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := s.ask(ctx, q)
	if ctx.Err() != nil {
		return 0, nil
	}
	if err != nil {
		return 1, err
	}
	return 1, got.complete(1, q.MaxTokens)
}
