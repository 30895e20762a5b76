package model

import (
	"fmt"
	"syscall"

	"vllm-vcr/ipc"
	"vllm-vcr/supervisor"
)

// kill ends a worker's process. What was open is lost; of what was on its way nobody knows but the books, which have to close.
func (h *history) kill() {
	rank := h.random.IntN(len(h.engines))
	e := h.engines[rank]
	if e.dead || e.restarts > 0 {
		return
	}
	atRest := h.random.IntN(2) == 0
	h.note("engine %d: kill, at rest %t", rank, atRest)
	if atRest {
		h.settle()
	}
	ctx, cancel := soon()
	defer cancel()
	pid := h.Engines(ctx)[rank].PID
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		h.t.Fatalf("engine %d: kill %d: %v", rank, pid, err)
	}
	h.await(h.t, fmt.Sprintf("engine %d is known to be dead", rank), func() bool {
		return h.Engines(ctx)[rank].State == supervisor.StateDead && !h.witness.isUp(rank)
	})
	h.bury(rank, h.Engines(ctx)[rank])
}

// bury closes the books of an engine that died.
func (h *history) bury(rank int, shown supervisor.EngineStatus) {
	h.t.Helper()
	e := h.engines[rank]
	certain, sent := e.raw, e.raw.Received
	var unsure, lost uint64
	for _, r := range e.open() {
		how, seen := h.witness.use(r)
		switch {
		case seen:
			e.count(how.how)
		case r.held && !r.aborted:
			lost++
		default:
			unsure++
		}
		h.past = append(h.past, r.id)
	}
	seen := e.raw
	e.raw = plus(shown.Stats, e.base)
	newlyLost := shown.Lost - e.lost
	certainlyDropped := e.dropped - e.garbage
	mostDropped := e.dropped
	e.running, e.waiting, e.dead, e.lost, e.dropped, e.garbage = nil, nil, true, shown.Lost, shown.Dropped, 0
	ok := within(certainlyDropped, shown.Dropped, mostDropped) && e.raw.Received == e.raw.Completed+e.raw.Failed+e.raw.Aborted &&
		within(sent-unsure, e.raw.Received, sent) && within(lost, newlyLost, lost+unsure) &&
		within(seen.Completed, e.raw.Completed, seen.Completed+unsure) && within(seen.Aborted, e.raw.Aborted, seen.Aborted+unsure) &&
		within(seen.Failed+newlyLost, e.raw.Failed, seen.Failed+newlyLost+unsure) && shown.Stats.Running+shown.Stats.Waiting == 0
	if !ok {
		h.t.Fatalf("engine %d died with books %+v, %d lost, %d dropped; certain before %+v, seen since %+v, %d must be lost, %d unsure",
			rank, e.raw, newlyLost, e.dropped, certain, seen, lost, unsure)
	}
}

// reviveAll waits for every engine that was killed.
func (h *history) reviveAll() {
	for rank, e := range h.engines {
		ctx, cancel := soon()
		h.await(h.t, fmt.Sprintf("engine %d is back", rank), func() bool {
			return h.Engines(ctx)[rank].State == supervisor.StateReady && h.witness.isUp(rank)
		})
		cancel()
		if e.dead {
			h.returned(rank)
		}
	}
}

// drain ends the fleet while requests are on their way. Its last word is about all of them.
func (h *history) drain(patient bool) {
	h.note("drain, patient %t", patient)
	if patient {
		h.finish()
		h.resetConfig()
	}
	var open, unsure uint64
	for rank := range h.engines {
		h.submit(rank, 3)
		h.barrier(rank)
		h.submit(rank, 2) // they may come too late
		unsure += 2
	}
	h.end(h.t)
	for _, e := range h.engines {
		for _, r := range e.open() {
			r.allowed |= aborted
			if how, seen := h.witness.use(r); seen {
				e.count(how.how)
			} else {
				open++
			}
		}
	}
	var want ipc.Stats
	var lost uint64
	for _, e := range h.engines {
		want = want.Add(minus(e.raw, e.base))
		lost += e.lost
	}
	got, gotLost := h.ledger(h.t)
	carried := want.Received - open - want.Completed - want.Failed - want.Aborted // received before a reset, and ended after it: below 0
	ok := gotLost == lost && open <= unsure && within(want.Received-unsure, got.Received, want.Received) &&
		got.Received == got.Completed+got.Failed+got.Aborted+carried && got.Completed >= want.Completed && got.Failed >= want.Failed && got.Aborted >= want.Aborted
	if !ok {
		h.t.Fatalf("the fleet ended with %+v, %d lost; its client saw %+v, %d lost, no end of %d, of which %d may not have come", got, gotLost, want, lost, open, unsure)
	}
}

func plus(a, b ipc.Stats) ipc.Stats {
	return ipc.Stats{
		Received: a.Received + b.Received, Completed: a.Completed + b.Completed, Failed: a.Failed + b.Failed, Aborted: a.Aborted + b.Aborted,
	}
}
