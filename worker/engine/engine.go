// Package engine is the simulation of one vLLM engine: which requests run, when each of their tokens is due, and how
// every request ends.
//
// An [Engine] is pure. It has no clock, goroutine, socket, log or global random source: time comes in with every call,
// outputs leave through a [Sink], and the same configuration and calls give the same outputs. One goroutine owns an
// engine. It must never know the wire format, the control API or the process it lives in, and it imports nothing but
// the standard library.
//
// A turn of the owner's loop applies inputs ([Engine.Add], [Engine.Abort], [Engine.SetParams] …) and then makes one
// [Engine.Step], all at one time. Step returns when it wants to be called again.
package engine

import (
	"iter"
	"math"
	"math/rand/v2"
	"time"
)

// Time is an instant on the engine's clock: nanoseconds since an origin that the caller chose. It never runs backwards
// from one call to the next.
type Time = time.Duration

// Never is the time of a step that nothing asks for.
const Never Time = math.MaxInt64

// Config is what an engine is built from and keeps for its life.
type Config struct {
	Index                uint64        // position in the fleet; seeds the random streams
	Seed                 uint64        // of every random stream
	ChunkSize            uint64        // tokens of one output, at least 1
	LongPrefillThreshold uint64        // prompt tokens one request takes from a round, 0 = no cap
	Priority             bool          // admit by (priority, arrival time) instead of arrival order
	TimeScale            float64       // every duration is divided by it, above 0
	Granularity          time.Duration // grid of leave times, 0 = off
	Latency              Latency       // recorded timing; nil = the times of Params
	Source               Source        // of tokens
	MaxLoras             uint64        // adapters in use at once, 0 = no limit
	BlockSize            uint64        // tokens of a KV block, at least 1
	Blocks               uint64        // KV blocks there are, at least 1
	Counts               Counts        // carried on from an engine before this one
	Params               Params
}

// Counts are the requests of an engine so far. Received is the sum of the other three once nothing runs or waits.
type Counts struct {
	Received, Completed, Failed, Aborted uint64
	// Merged counts the outputs that a slow reader cost: each was handed over as part of a later one.
	Merged uint64
	// Faults counts how often faults of each kind have struck.
	Faults [FaultKinds]uint64
}

// Engine is one simulated engine. Make it with [New].
type Engine struct {
	cfg    Config
	params *Params
	sink   Sink
	counts Counts

	requests   map[string]*Request // all that wait or run
	waiting    queue[*Request]     // in order of admission
	newcomers  []*Request          // arrivals since the last step
	due        calendar            // running requests whose next chunk leaves later
	ready      []*Request          // running requests whose next chunk is due in the coming step
	spare      []*Request          // the slice that ready is swapped with
	prefilling []*Request          // running requests whose prompt is unfinished, in order of admission
	clients    []client

	running   uint64 // requests that hold a slot
	decoding  uint64 // requests between the hand-over of their first token and the due time of their last
	backlog   uint64 // prompt tokens of prefilling, each prompt's share capped by LongPrefillThreshold
	round     round
	blocks    uint64            // KV blocks that running requests hold
	adapters  map[string]uint64 // requests running with each adapter
	blocked   []*Request        // requests that wait for an adapter's end, not for a slot; in no order
	arrivals  uint64            // sequence number of the last arrival
	admitting uint64            // sequence number of the last admission

	pause    pause
	still    stillness
	faults   []*Fault // that are armed, in the order in which they were
	crashed  bool     // nothing happens any more
	draining bool

	failures *rand.Rand
	latency  *rand.Rand
	tokens   []uint32 // scratch of one output
}

// New returns an idle engine that hands its outputs to sink.
func New(cfg Config, sink Sink) *Engine {
	e := &Engine{
		cfg:      cfg,
		sink:     sink,
		counts:   cfg.Counts,
		requests: make(map[string]*Request),
		adapters: make(map[string]uint64),
		waiting:  requestQueue(byArrival),
		due:      newCalendar(),
		failures: stream(cfg.Seed, cfg.Index, purposeFailures),
		latency:  stream(cfg.Seed, cfg.Index, purposeLatency),
	}
	if cfg.Priority {
		e.waiting.less = byPriority
	}
	e.SetParams(cfg.Params)
	return e
}

// SetParams replaces the parameter set. Requests admitted from now on are paced by it; running ones keep the set of
// their admission. Its effect on admission comes with the next step.
func (e *Engine) SetParams(p Params) { e.params = p.clone() }

// Counts returns the counters.
func (e *Engine) Counts() Counts { return e.counts }

// Running returns how many requests hold a slot.
func (e *Engine) Running() uint64 { return e.running }

// Waiting returns how many requests wait for admission, those included that wait for another adapter's end.
func (e *Engine) Waiting() uint64 { return uint64(e.waiting.len()) + e.Skipped() }

// Skipped returns how many of the waiting requests wait for another adapter's end.
func (e *Engine) Skipped() uint64 { return uint64(len(e.blocked)) }

// Usage returns the share of the KV cache that running requests hold, 0 … 1.
func (e *Engine) Usage() float64 { return min(1, float64(e.blocks)/float64(e.cfg.Blocks)) }

// Unfinished has every request that waits or runs, in no order, and whether it runs. The requests are the engine's: they may
// be read until its next call.
func (e *Engine) Unfinished() iter.Seq2[*Request, bool] {
	return func(yield func(*Request, bool) bool) {
		for _, r := range e.requests {
			if !yield(r, r.state != queued && r.state != blocked) {
				return
			}
		}
	}
}

// Idle says that no request waits or runs.
func (e *Engine) Idle() bool { return len(e.requests) == 0 }
