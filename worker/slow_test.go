package worker

import (
	"fmt"
	"testing"

	"vllm-vcr/config"
	"vllm-vcr/protocol/enginecore"
)

// A client that reads nothing is held: its requests are counted, not encoded, and it gets every token once it reads. The
// other client notices nothing.
func TestSlowReader_HoldsOneClientOnly(t *testing.T) {
	r := newRig(t, rigOptions{clients: 2, change: func(c *config.Config) { c.MaxNumSeqs = 64 }})
	release := make(chan struct{})
	r.outputs.mu.Lock()
	r.outputs.hold[1] = release
	r.outputs.mu.Unlock()

	const requests, tokens = 32, 50_000
	for i := range requests {
		req := request(fmt.Sprintf("slow-%d", i), tokens)
		req.ClientIndex = 1
		r.add(req)
	}
	ctx := timeout(t)
	for r.page.Merged.Load() < requests*tokens/4 {
		if ctx.Err() != nil {
			t.Fatalf("%d outputs merged within %v, want %d at least", r.page.Merged.Load(), patience, requests*tokens/4)
		}
		r.stats()
	}
	r.add(request("quick", 100))
	if got := r.outputs.awaitEnd("quick"); len(got.tokens) != 100 || got.chunks != 100 {
		t.Errorf("the other client got %d tokens in %d chunks, want 100 in 100", len(got.tokens), got.chunks)
	}
	if held := r.page.HeldBytes.Load(); held == 0 || held > 2*fullBytes {
		t.Errorf("%d bytes held, want some and at most about %d", held, fullBytes)
	}
	if got := r.stats(); got.Running != requests {
		t.Errorf("%d running, want all %d: they keep their slots until their last token is handed over", got.Running, requests)
	}
	close(release)
	for i := range requests {
		got := r.outputs.awaitEnd(fmt.Sprintf("slow-%d", i))
		if len(got.tokens) != tokens || got.finish != enginecore.FinishLength {
			t.Errorf("slow-%d: %d tokens, finish %v, want %d, length", i, len(got.tokens), got.finish, tokens)
		}
		if got.largest > 4096 {
			t.Errorf("slow-%d: an output of %d tokens, want at most 4096", i, got.largest)
		}
	}
	if got := r.stats(); got.Completed != requests+1 || got.Running != 0 {
		t.Errorf("stats %+v, want %d completed", got, requests+1)
	}
	if r.page.HeldNanos.Load() == 0 {
		t.Error("no time held")
	}
}
