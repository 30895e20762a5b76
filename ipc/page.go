package ipc

import "sync/atomic"

// counters is the layout of a page: 64-bit words, each written with an atomic store by one process at a time.
type counters struct {
	// Requests since the supervisor's start, never set back.
	Received, Completed, Failed, Aborted atomic.Uint64
	// Requests at the moment.
	Running, Waiting atomic.Uint64
	// resets counts the resets so far; its last bit chooses the baseline in force. A reset fills the other one before it
	// moves on, so that a kill in the middle of it leaves a whole baseline.
	resets    atomic.Uint64
	baselines [2]baseline
	// Lost counts requests that ended with a process; they are in Failed as well.
	Lost atomic.Uint64
	// Dropped counts messages of a frontend that could not be read.
	Dropped atomic.Uint64
	// HeldBytes is the encoded output that waits for slow readers at the moment.
	HeldBytes atomic.Uint64
	// HeldNanos is for how long any output was held, in ns.
	HeldNanos atomic.Uint64
	// Merged counts outputs that left as part of a later one.
	Merged atomic.Uint64
	// late counts outputs that left after their time, see AddLate.
	late lateness
	// Saturated is 1 while the process, and not what it simulates, sets the pace.
	Saturated atomic.Uint64
	// InputsHigh is the most inputs that ever waited for the engine.
	InputsHigh atomic.Uint64
	// OutputHigh is the most bytes of output that ever waited for one client to read.
	OutputHigh atomic.Uint64
	// Generation is the number of the last change the engine applied.
	Generation atomic.Uint64
	// LogDropped counts log lines that nobody took.
	LogDropped atomic.Uint64
	// Goroutines is how many the process had at its last call; 0 = it is gone, or has had none.
	Goroutines atomic.Uint64
	// JournalKept is how many finished requests the process remembers; JournalDropped counts those forgotten, lost ones included.
	JournalKept, JournalDropped atomic.Uint64
	// FaultsApplied counts how often faults have struck, in the order of [FaultKinds].
	FaultsApplied [faultKinds]atomic.Uint64
	faults        [MaxFaults]faultSlot
}

// faultSlot is how often the fault with an id has struck.
type faultSlot struct{ id, applied atomic.Uint64 }

// baseline is the first four counters as they were at a reset.
type baseline struct{ received, completed, failed, aborted atomic.Uint64 }

// Page is the counters of one engine, in memory that its process shares with the supervisor: what was counted outlives
// a kill −9 and goes on in the next process. The engine's loop is the only writer while its process lives, the
// supervisor while none does; anyone may read at any time.
type Page struct {
	*counters
	unmap func() error
}

// Close gives the memory back. The page must not be used again.
func (p *Page) Close() error { return p.unmap() }

// Stats returns the counters since the last reset, and the gauges. While a writer is at work they may be of slightly
// different moments, but no counter is ever below 0.
func (p *Page) Stats() Stats {
	base := &p.baselines[p.resets.Load()%2]
	s := Stats{
		Completed: since(&base.completed, &p.Completed),
		Failed:    since(&base.failed, &p.Failed),
		Aborted:   since(&base.aborted, &p.Aborted),
		Running:   p.Running.Load(),
		Waiting:   p.Waiting.Load(),
	}
	s.Received = since(&base.received, &p.Received) // last, as it is written first
	return s
}

// since reads the baseline first: the count may only have grown since that was stored.
func since(base, count *atomic.Uint64) uint64 {
	b := base.Load()
	return count.Load() - b
}

// Reset makes the four counters start from 0 again. Gauges stay, and so does Lost.
func (p *Page) Reset() {
	n := p.resets.Load() + 1
	base := &p.baselines[n%2]
	base.received.Store(p.Received.Load())
	base.completed.Store(p.Completed.Load())
	base.failed.Store(p.Failed.Load())
	base.aborted.Store(p.Aborted.Load())
	p.resets.Store(n)
}

// CloseLedger accounts for a process that is gone: what it had taken and not ended is failed and lost, and nothing runs
// or waits any more. Whatever the journal could show is forgotten. It returns how many requests were lost.
func (p *Page) CloseLedger() uint64 {
	ended := p.Completed.Load() + p.Failed.Load() + p.Aborted.Load()
	received := max(p.Received.Load(), ended) // a kill may fall between two stores
	lost := received - ended
	p.Received.Store(received)
	p.Failed.Add(lost)
	p.Lost.Add(lost)
	p.Running.Store(0)
	p.Waiting.Store(0)
	p.HeldBytes.Store(0)
	p.Saturated.Store(0)
	p.Goroutines.Store(0)
	p.JournalKept.Store(0)
	p.JournalDropped.Store(received) // all there ever were have ended, and nobody remembers one
	return lost
}
