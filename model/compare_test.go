package model

import (
	"fmt"

	"github.com/google/go-cmp/cmp"

	"vllm-vcr/ipc"
	"vllm-vcr/supervisor"
)

// barrier returns when an engine has taken all that its client sent before, and its client all that came of it: two calls are two turns
// of the engine's loop, and the second answer is behind what the first turn sent.
func (h *history) barrier(rank int) {
	ctx, cancel := soon()
	defer cancel()
	for range 2 {
		if _, err := h.client.Utility(ctx, rank, "get_weight_version", nil); err != nil {
			h.t.Fatalf("engine %d: barrier: %v", rank, err)
		}
	}
}

// settle waits until every engine has done what it does by itself, enters what its client saw of it, and wants every end explained.
func (h *history) settle() {
	for rank, e := range h.engines {
		if e.dead {
			continue
		}
		h.barrier(rank)
		e.garbage = 0
		for _, r := range e.settle() {
			h.ended(rank, r)
		}
		h.barrier(rank)
	}
	if rest := h.witness.rest(); rest != nil {
		h.t.Fatalf("ends of requests that are open, or have ended: %+v", rest)
	}
}

// ended waits for the end of a request, and counts it as what it is.
func (h *history) ended(rank int, r *request) {
	var how ending
	h.await(h.t, fmt.Sprintf("engine %d: request %s ends as it may", rank, r.id), func() (ok bool) {
		how, ok = h.witness.use(r)
		return ok
	})
	h.engines[rank].count(how.how)
	h.past = append(h.past, r.id)
}

// compare holds every engine against its model, and the sum against theirs.
func (h *history) compare() {
	h.t.Helper()
	h.note("compare")
	h.settle()
	ctx, cancel := soon()
	defer cancel()
	shown := h.Engines(ctx)
	var sum ipc.Stats
	dead := -1
	for rank, e := range h.engines {
		sum = sum.Add(e.stats())
		h.compareBooks(rank, shown[rank])
		if e.dead {
			dead = rank
			continue
		}
		h.compareLive(rank)
	}
	got, err := h.Stats(ctx)
	if dead >= 0 {
		if err == nil {
			return // it came back this moment
		}
		h.failed(err, 0, len(h.engines)-1)
		return
	}
	if diff := cmp.Diff(sum, got); err != nil || diff != "" {
		h.t.Fatalf("sum of counters: %v (-model +fleet):\n%s", err, diff)
	}
}

// books is what an engine's page says, whether it lives or not.
type books struct {
	Stats         ipc.Stats
	Lost, Dropped uint64
}

func (h *history) compareBooks(rank int, s supervisor.EngineStatus) {
	h.t.Helper()
	e := h.engines[rank]
	want := books{e.stats(), e.lost, e.dropped}
	if diff := cmp.Diff(want, books{s.Stats, s.Lost, s.Dropped}); diff != "" {
		h.t.Fatalf("engine %d (-model +fleet):\n%s", rank, diff)
	}
	if s.Restarts != e.restarts && !(e.dead && s.Restarts == e.restarts+1) {
		h.t.Fatalf("engine %d: %d restarts, want %d", rank, s.Restarts, e.restarts)
	}
}

// compareLive asks the engine itself.
func (h *history) compareLive(rank int) {
	h.t.Helper()
	e := h.engines[rank]
	ctx, cancel := soon()
	defer cancel()
	live, err := h.EngineConfig(ctx, rank)
	if diff := cmp.Diff(e.live, live); err != nil || diff != "" {
		h.t.Fatalf("engine %d: configuration: %v (-model +fleet):\n%s", rank, err, diff)
	}
	stats, err := h.EngineStats(ctx, rank)
	if diff := cmp.Diff(e.stats(), stats); err != nil || diff != "" {
		h.t.Fatalf("engine %d: counters: %v (-model +fleet):\n%s", rank, err, diff)
	}
}

// unsettled is how many requests of each engine may or may not have been counted: all that are not held for certain.
func (h *history) unsettled() []uint64 {
	counts := make([]uint64, len(h.engines))
	for rank, e := range h.engines {
		for _, r := range e.open() {
			if !r.held || r.aborted || r.allowed == failed {
				counts[rank]++
			}
		}
	}
	return counts
}

// adoptBase takes from an engine's word what it had counted when it was reset, and wants it between what was certain and all there was.
func (h *history) adoptBase(rank int, unsettled uint64) {
	h.t.Helper()
	e := h.engines[rank]
	before := e.base // as its client knew it; received holds all that was sent
	ctx, cancel := soon()
	defer cancel()
	shown, err := h.EngineStats(ctx, rank)
	if err != nil {
		h.t.Fatalf("engine %d: stats: %v", rank, err)
	}
	e.base = minus(e.raw, shown)
	sent := before.Received - unsettled
	ended := e.base.Completed + e.base.Failed + e.base.Aborted
	if !within(sent, e.base.Received, before.Received) || ended > e.base.Received ||
		!within(before.Completed, e.base.Completed, e.raw.Completed) || !within(before.Failed, e.base.Failed, e.raw.Failed) ||
		!within(before.Aborted, e.base.Aborted, e.raw.Aborted) {
		h.t.Fatalf("engine %d: counters at the reset were %+v; certain before it %+v less %d requests, certain now %+v",
			rank, e.base, before, unsettled, e.raw)
	}
}

func within(least, n, most uint64) bool { return least <= n && n <= most }
