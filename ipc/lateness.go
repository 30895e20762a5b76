package ipc

import (
	"sync/atomic"
	"time"
)

// LateBounds are the upper bounds of the buckets in which late outputs are counted; one more bucket has what is later still.
var LateBounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second,
}

// lateness counts paced outputs by how long after their time they left.
type lateness struct {
	buckets [len(LateBounds) + 1]atomic.Uint64
	nanos   atomic.Uint64
}

// Strain is how hard an engine's process has it.
type Strain struct {
	// Late counts the outputs that had to wait for their time, by bucket: each has those up to its bound of LateBounds and
	// above the one before, the last has the rest. LateSum is their lateness together.
	Late    [len(LateBounds) + 1]uint64
	LateSum time.Duration
	// Saturated says that the process, and not what it simulates, sets the pace.
	Saturated bool
	// InputsHigh is the most inputs that ever waited for the engine, OutputHigh the most bytes of output that ever waited
	// for one client to read.
	InputsHigh, OutputHigh uint64
}

// AddLate enters n outputs that left late by d.
func (p *Page) AddLate(d time.Duration, n uint64) {
	at := 0
	for at < len(LateBounds) && d > LateBounds[at] {
		at++
	}
	p.late.buckets[at].Add(n)
	p.late.nanos.Add(uint64(d) * n)
}

// Strain reads what the page has of it.
func (p *Page) Strain() Strain {
	s := Strain{
		LateSum: time.Duration(p.late.nanos.Load()), Saturated: p.Saturated.Load() > 0,
		InputsHigh: p.InputsHigh.Load(), OutputHigh: p.OutputHigh.Load(),
	}
	for i := range s.Late {
		s.Late[i] = p.late.buckets[i].Load()
	}
	return s
}
