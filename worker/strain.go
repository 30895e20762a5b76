package worker

import (
	"sync/atomic"
	"time"

	"vllm-vcr/ipc"
	"vllm-vcr/worker/engine"
)

// An engine is saturated when in the last strainWindow its loop was busy for more than mostBusy of the time, or more than
// mostLate of the paced outputs left later than tooLate: then its process, and not what it simulates, sets the pace.
const (
	strainWindow = time.Second
	mostBusy     = 0.9
	mostLate     = 0.01
	tooLate      = 10 * time.Millisecond
)

// strain finds out whether the loop keeps up.
type strain struct {
	page      *ipc.Page
	since     engine.Time // when the window began
	busy      time.Duration
	late, all uint64 // paced outputs of the window that were too late, and all
	saturated bool
}

// left enters n paced outputs that left late by d.
func (s *strain) left(d time.Duration, n uint64) {
	s.page.AddLate(d, n)
	s.all += n
	if d > tooLate {
		s.late += n
	}
}

// worked enters a turn of the loop. It returns when to look again though nothing else happens: as long as the engine is held
// to be saturated. changed says that it is, and was not, or the other way round.
func (s *strain) worked(from, to engine.Time) (next engine.Time, changed bool) {
	s.busy += to - from
	if to-s.since >= strainWindow {
		was := s.saturated
		s.saturated = s.tooMuch(to - s.since)
		changed = s.saturated != was
		*s = strain{page: s.page, since: to, saturated: s.saturated}
		s.publish()
	}
	if !s.saturated {
		return engine.Never, changed
	}
	return s.since + strainWindow, changed
}

func (s *strain) tooMuch(window time.Duration) bool {
	return float64(s.busy) > mostBusy*float64(window) || float64(s.late) > mostLate*float64(s.all)
}

func (s *strain) publish() {
	var saturated uint64
	if s.saturated {
		saturated = 1
	}
	s.page.Saturated.Store(saturated)
}

// raise moves a high-water mark.
func raise(mark *atomic.Uint64, to uint64) {
	if to > mark.Load() {
		mark.Store(to)
	}
}
