package dispatch

import (
	"vllm-vcr/frontend/engineclient"
	"vllm-vcr/protocol/enginecore"
)

// Options describe a dispatcher.
type Options struct {
	// Handshake is where engines say HELLO; see [engineclient.Options].
	Handshake string

	// Engines is the number of engines awaited, of the ranks 0 to Engines-1.
	Engines int

	// Version is the line that the engines speak.
	Version enginecore.Version

	// KeepHandshake lets an engine that was restarted say HELLO again.
	KeepHandshake bool

	// Observer is told what happens to requests and engines; nil = nobody.
	Observer Observer

	// Changed is called after an engine came up (err is nil) or was lost, on a goroutine that must not be held up. nil = nobody.
	Changed func(rank int, err error)

	// Refused is called with what an engine did wrong and what was given up for it. nil = nobody.
	Refused func(error)
}

func (o Options) client(events engineclient.Events) engineclient.Options {
	return engineclient.Options{
		Handshake: o.Handshake, Engines: o.Engines, Clients: 1, Version: o.Version, KeepHandshake: o.KeepHandshake, Events: events,
	}
}

// Observer is told what happens, for metrics. Its methods may be called concurrently, must not wait, and must not call the
// dispatcher. What they are given is valid until they return.
type Observer interface {
	// Joined tells that an engine came up, and what it registered with.
	Joined(rank int, r *enginecore.ReadyResponse)

	// Left tells that it is gone.
	Left(rank int)

	// Scheduled tells of an engine's scheduler stats. Waiting is without the skipped ones, whatever the line.
	Scheduled(rank int, s *enginecore.SchedulerStats)

	// Step tells what one message of an engine held.
	Step(rank int, s *Step)

	// Ended tells of the end of a request.
	Ended(rank int, e *End)

	// Slept tells the level at which all engines sleep from now on; 0 = awake.
	Slept(level uint64)
}

// Step is what one message of an engine held for the streams that were open. Times are in seconds.
type Step struct {
	Generated   int                     // tokens
	Prefill     enginecore.PrefillStats // sums over the requests that began
	FirstTokens []float64               // for each request that began, from its arrival here to its first token
	Gaps        []float64               // for every later output, since the one before by the engine's clock
	Preemptions int
}

// End is what one request was, as far as it came. Times are in seconds; those of a phase that it didn't reach are 0.
type End struct {
	Reason      enginecore.FinishReason
	Prompt      int // tokens
	Generated   int // tokens
	Computed    int // tokens of the prompt that were in no cache
	Preemptions int
	MaxTokens   enginecore.Optional[uint32] // as it was asked for

	Total     float64 // from its arrival here
	Queue     float64 // at the engine, until it was scheduled
	Prefill   float64 // from then to the first token
	Decode    float64 // from the first token to the last
	Inference float64 // Prefill and Decode

	// Choices is, with the last of the requests that one call made, their number, and 0 with the others. MaxGenerated is then
	// the most tokens that one of them generated.
	Choices      int
	MaxGenerated int
}

// nobody is an observer that doesn't listen.
type nobody struct{}

func (nobody) Joined(int, *enginecore.ReadyResponse)     {}
func (nobody) Left(int)                                  {}
func (nobody) Scheduled(int, *enginecore.SchedulerStats) {}
func (nobody) Step(int, *Step)                           {}
func (nobody) Ended(int, *End)                           {}
func (nobody) Slept(uint64)                              {}
