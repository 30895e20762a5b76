package dispatch

import (
	"slices"
	"sync"

	"vllm-vcr/protocol/enginecore"
)

// witness is an observer that remembers.
type witness struct {
	nobody
	mu    sync.Mutex
	steps []Step
	ends  []End
	left  []int
	slept []uint64
	stats []enginecore.SchedulerStats
}

func (w *witness) Step(_ int, s *Step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := *s
	own.FirstTokens, own.Gaps = slices.Clone(s.FirstTokens), slices.Clone(s.Gaps)
	w.steps = append(w.steps, own)
}

func (w *witness) Ended(_ int, e *End) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, *e)
}

func (w *witness) Left(rank int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = append(w.left, rank)
}

func (w *witness) Slept(level uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slept = append(w.slept, level)
}

func (w *witness) Scheduled(_ int, s *enginecore.SchedulerStats) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats = append(w.stats, *s)
}

func (w *witness) reasons() []enginecore.FinishReason {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []enginecore.FinishReason
	for _, e := range w.ends {
		all = append(all, e.Reason)
	}
	return all
}

func (w *witness) seen() (steps []Step, ends []End) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.steps), slices.Clone(w.ends)
}
