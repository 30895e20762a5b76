//go:build conformance

package conformance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// TestLoad sends several hundred requests at once, of which a third goes away at a moment of chance. Every answer that was
// waited for is whole, and the books balance to the last request.
func TestLoad(t *testing.T) {
	const requests = 600
	eachServer(t, func(t *testing.T, version string) {
		srv := serve(t, setup{version: version, engines: 3, play: []string{"--max-num-seqs", "64",
			"--time-to-first-token", "100", "--time-to-first-token-std-dev", "20",
			"--inter-token-latency", "5", "--inter-token-latency-std-dev", "1"}})
		rng := rand.New(rand.NewPCG(1, 2))
		var crowd sync.WaitGroup
		faults := make(chan error, requests)
		stayed := uint64(0)
		for i := range requests {
			q, patience := completion(1+rng.IntN(100)), callLimit
			if rng.IntN(2) == 0 {
				q = q.streamed()
			}
			if i%3 == 0 {
				patience = time.Duration(rng.IntN(1500)) * time.Millisecond
			} else {
				stayed++
			}
			crowd.Go(func() {
				if err := srv.visit(q, patience); err != nil {
					faults <- fmt.Errorf("request %d: %w", i, err)
				}
			})
		}
		crowd.Wait()
		close(faults)
		for err := range faults {
			t.Error(err)
		}
		got := srv.awaitIdle(t)
		if got.Failed != 0 || got.Received > requests || got.Completed < stayed || got.Aborted == 0 {
			t.Errorf("stats = %+v, want at most %d received, at least %d completed, some aborted, none failed", got, requests, stayed)
		}
		t.Logf("of %d requests %d went away; %+v", requests, requests-stayed, got)
	})
}

// visit asks q and waits for the answer as long as patience lasts: who stayed must have it whole.
func (s *server) visit(q question, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := s.ask(ctx, q)
	if ctx.Err() != nil {
		return nil // went away
	}
	if err != nil {
		return err
	}
	return got.complete(1, q.MaxTokens)
}
