package dispatch

import (
	"slices"
	"sync"
)

// waitingWeight is what a waiting request counts against a running one.
const waitingWeight = 4

// balancer chooses engines by their load. It is safe for concurrent use.
type balancer struct {
	mu    sync.Mutex
	loads []load
	turn  int // where the search begins, so that equal engines take turns
}

// load is what is known of one engine's.
type load struct {
	up               bool
	waiting, running uint64 // by its latest scheduler stats
	sent             uint64 // requests since those
	open             uint64 // requests sent to it that have not ended
}

// score is the lower the sooner the engine is chosen. A request that overtook the stats in which it isn't counted yet is known
// from open.
func (l *load) score() uint64 {
	waiting := l.waiting + l.sent
	if l.open > l.running {
		waiting = max(waiting, l.open-l.running)
	}
	return waitingWeight*waiting + l.running
}

// choose takes the engine with the lowest score of those that are up and not among except, and counts a request for it; false
// if there is none.
func (b *balancer) choose(except []int) (rank int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	best := uint64(0)
	for i := range b.loads {
		at := (b.turn + i) % len(b.loads)
		l := &b.loads[at]
		if !l.up || slices.Contains(except, at) {
			continue
		}
		if s := l.score(); !ok || s < best {
			rank, best, ok = at, s, true
		}
	}
	if ok {
		b.turn = (rank + 1) % len(b.loads)
		b.loads[rank].sent++
	}
	return rank, ok
}

// count enters a request for an engine that was not chosen here.
func (b *balancer) count(rank int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loads[rank].sent++
}

// opened enters that an engine has a request, ended that it is done with one.
func (b *balancer) opened(rank int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loads[rank].open++
}

func (b *balancer) ended(rank int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loads[rank].open--
}

// report enters an engine's scheduler stats.
func (b *balancer) report(rank int, waiting, running uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &b.loads[rank]
	l.waiting, l.running, l.sent = waiting, running, 0
}

// set enters that an engine came up, idle, or that it is gone.
func (b *balancer) set(rank int, up bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loads[rank] = load{up: up}
}

func (b *balancer) snapshot() []load {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.loads)
}
