package ipc

import "sync/atomic"

// counters is the layout of a page: 64-bit words, each written with an atomic store by one process at a time.
type counters struct {
	// Requests since the supervisor's start, never set back.
	Received, Completed, Failed, Aborted atomic.Uint64
	// Requests at the moment.
	Running, Waiting atomic.Uint64
	// The first four at the last reset.
	baseReceived, baseCompleted, baseFailed, baseAborted atomic.Uint64
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
	// Generation is the number of the last change the engine applied.
	Generation atomic.Uint64
	// LogDropped counts log lines that nobody took.
	LogDropped atomic.Uint64
}

// Page is the counters of one engine, in memory that its process shares with the supervisor: what was counted outlives
// a kill −9 and goes on in the next process. The engine's loop is the only writer while its process lives, the
// supervisor while none does; anyone may read at any time.
type Page struct {
	*counters
	unmap func() error
}

// Close gives the memory back. The page must not be used again.
func (p *Page) Close() error { return p.unmap() }

// Stats returns the counters since the last reset, and the gauges.
func (p *Page) Stats() Stats {
	return Stats{
		Received:  p.Received.Load() - p.baseReceived.Load(),
		Completed: p.Completed.Load() - p.baseCompleted.Load(),
		Failed:    p.Failed.Load() - p.baseFailed.Load(),
		Aborted:   p.Aborted.Load() - p.baseAborted.Load(),
		Running:   p.Running.Load(),
		Waiting:   p.Waiting.Load(),
	}
}

// Reset makes the four counters start from 0 again. Gauges stay, and so does Lost.
func (p *Page) Reset() {
	p.baseReceived.Store(p.Received.Load())
	p.baseCompleted.Store(p.Completed.Load())
	p.baseFailed.Store(p.Failed.Load())
	p.baseAborted.Store(p.Aborted.Load())
}

// CloseLedger accounts for a process that is gone: what it had taken and not ended is failed and lost, and nothing runs
// or waits any more. It returns how many requests those were.
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
	return lost
}
