package engine

import "math/rand/v2"

// Request is one request of a frontend. The caller fills the exported fields, hands it to [Engine.Add] and does not
// change it again; the engine owns it from then on.
type Request struct {
	progress

	Caller any    // the caller's own; the engine never looks at it
	Own    *Own   // what it sets for itself; nil = nothing
	Client uint32 // which of the frontend's API servers it came from, and goes back to
	pace   *Params

	ID           string
	PromptTokens uint64  // length of the prompt
	MaxTokens    uint64  // tokens to generate
	Priority     int64   // smaller is earlier, under the priority policy
	ArrivalTime  float64 // the frontend's own clock; orders equal priorities
	Pooling      bool    // wants one answer about its prompt instead of tokens
	AbortAtOnce  bool    // is queued and aborted in one go
	Adapter      string  // LoRA adapter, "" = the base model

	// Forced are the first tokens to hand out, whatever the source says.
	Forced []uint32
	// Avoid is asked about every token of the source for one to give in its place, nil = as it is. At a token that it
	// avoids the request would end by accident.
	Avoid interface{ Next(token uint32) uint32 }
	// StopAfter is the number of tokens after which the request ends with Stop, if MaxTokens lets it; 0 = none.
	StopAfter uint64
	// MaxHeld bounds the tokens of one output in which held tokens leave, 0 = no bound of its own.
	MaxHeld uint64
	// Prompt is what a Source is given of the prompt; nil where none wants it.
	Prompt []uint32

	Arrived  Time // when Add took it
	Admitted Time // when it got its slot

	pos      int    // place in the queue or the day that holds it
	day      *day   // of the calendar, nil = it is in none
	arrival  uint64 // sequence number of its arrival
	turn     uint64 // sequence number of its admission
	ready    Time   // admission and time to first token: the earliest due time of the first chunk
	leave    Time   // due rounded up to the grid
	unfilled uint64 // prompt tokens not yet prefilled
	share    uint64 // its part of Engine.backlog

	blocks uint64 // KV blocks it holds

	random *rand.Rand // where Own is set
	faults []*Fault   // that will strike it, in order
}

// progress is what each token of a request looks at. It fills one cache line, the first: with thousands of requests the rest of them is not
// in the cache.
type progress struct {
	state     state
	decodes   bool   // counts in Engine.decoding
	held      bool   // is in its client's list of held requests
	failing   bool   // the first of its faults ends it once its reader has taken all
	plain     bool   // its tokens are the source's alone
	generated uint64 // tokens that fell due
	emitted   uint64 // tokens handed over
	length    uint64 // tokens to generate: MaxTokens, or less
	bound     uint64 // tokens to generate before a fault strikes: length, where none will
	room      uint64 // tokens that fit into the last of its KV blocks
	seed      uint64 // of its token stream
	due       Time   // exact due time of the next chunk
}

// finish is the reason of an end that was not cut short.
func (r *Request) finish() Finish {
	if r.Pooling || r.length == r.StopAfter {
		return Stop
	}
	return Length
}

// Emitted returns how many tokens of r were handed over, those of the present chunk included.
func (r *Request) Emitted() uint64 { return r.emitted }

// state is where a request stands; the structures that hold it follow from it.
type state uint8

const (
	arriving   state = iota // not yet judged
	queued                  // in Engine.waiting
	prefilling              // in Engine.prefilling
	paced                   // in Engine.due
	inReady                 // in Engine.ready, or being stepped
	finishing               // all tokens fell due, some are held back
	blocked                 // in Engine.blocked: its adapter has to wait for another's end
	gone                    // ended; slices that still name it skip it
)

// Finish is why a request ended, with vLLM's codes.
type Finish int8

// The finish reasons of vLLM's FinishReason; NotFinished marks a chunk that others follow.
const (
	NotFinished Finish = iota - 1
	Stop
	Length
	Abort
	Error
	Repetition
)

// Cause is why a request ended without, or before, its last token.
type Cause uint8

// The causes, with the counter each moves.
const (
	Duplicate      Cause = iota // its id is in use: failed
	TooLong                     // prompt and output are longer than the model: failed
	Injected                    // failure injection: failed
	NoSampling                  // asks for nothing an engine knows: failed
	UnknownAdapter              // names an adapter that is not loaded: failed
	NothingToDo                 // asked for no tokens: completed
	Aborted                     // the frontend took it back, or is gone: aborted
	ShuttingDown                // ended, or came too late, because of a shutdown: aborted
	PausedByClient              // came while generation is paused: failed
	Unreadable                  // only its id could be read: failed
	BadArgument                 // sets something for itself that cannot be: failed
)

// Outcome is the counter that the end of a request moves.
type Outcome uint8

// The outcomes.
const (
	OutcomeCompleted Outcome = iota
	OutcomeFailed
	OutcomeAborted
)

// Outcome returns the counter that a request which ends for this cause moves.
func (c Cause) Outcome() Outcome {
	switch c {
	case NothingToDo:
		return OutcomeCompleted
	case Aborted, ShuttingDown:
		return OutcomeAborted
	default:
		return OutcomeFailed
	}
}

// finish is the reason that a frontend is told; an injected failure draws its own.
func (c Cause) finish() Finish {
	switch c {
	case TooLong, NothingToDo:
		return Length
	case Aborted, ShuttingDown:
		return Abort
	default:
		return Error
	}
}

// Sink takes what an engine does, in order. The engine calls it from inside its own calls, in its owner's goroutine; a
// sink must not call back, block or keep a slice. Requests may be kept until their end.
type Sink interface {
	// Queued says that r has to wait for a slot.
	Queued(r *Request)
	// Admit says that r got its slot.
	Admit(r *Request)
	// Chunk hands over the next tokens of r, more than Config.ChunkSize of them only after its client was held. first
	// marks r's first chunk; with a finish reason it is the last, and r is forgotten.
	Chunk(r *Request, tokens []uint32, finish Finish, first bool)
	// End ends r with no tokens; r is forgotten.
	End(r *Request, finish Finish, cause Cause)
	// Late says that the next n chunks to be handed over were to leave so long before. It is asked for chunks that had to
	// wait for their time, not for those that nothing delays.
	Late(by Time, n int)
	// Full says that enough is waiting for a client: what falls due for it is held from now on, until Engine.Release.
	Full(client uint32) bool
}
