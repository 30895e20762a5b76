package worker

import (
	"cmp"
	"strings"

	"vllm-vcr/ipc"
	"vllm-vcr/worker/engine"
)

// journal remembers the requests that ended last, in a ring that is made once: to note an end is to write one record of it.
// Those that have not ended are the engine's to remember. It belongs to the loop.
type journal struct {
	ring     []record
	ended    uint64 // requests noted; the next record's place is their number in the ring
	arrivals uint64
	earlier  uint64 // requests that processes before this one forgot
	page     *ipc.Page
}

// record is how a request stands, or stood at its end. Its strings are those of the request.
type record struct {
	id, external, adapter  string
	state                  string // of ipc.RequestStates
	cause                  string
	finish                 engine.Finish
	client                 uint32
	number                 uint64 // of its arrival
	prompt, limit, emitted uint64 // tokens
	arrived, admitted      engine.Time
	first, finished        engine.Time // 0 = not yet, or never
}

func newJournal(size uint64, page *ipc.Page) *journal {
	return &journal{ring: make([]record, size), earlier: page.JournalDropped.Load(), page: page}
}

// arrive numbers a request.
func (j *journal) arrive(r *engine.Request) {
	j.arrivals++
	r.Caller.(*caller).number = j.arrivals
}

// end notes the end of r, which the engine is about to forget.
func (j *journal) end(now engine.Time, r *engine.Request, state string, finish engine.Finish, cause string) {
	if size := uint64(len(j.ring)); size > 0 {
		slot := &j.ring[j.ended%size]
		*slot = recordOf(r, state)
		slot.finish, slot.cause, slot.finished = finish, cause, now
		slot.arrived = cmp.Or(slot.arrived, now) // the engine has not looked at it
		slot.id, slot.external, slot.adapter = bounded(slot.id), bounded(slot.external), bounded(slot.adapter)
	}
	j.ended++
	j.page.JournalKept.Store(uint64(len(j.kept())))
	j.page.JournalDropped.Store(j.dropped())
}

// kept are the records there are, in no order.
func (j *journal) kept() []record { return j.ring[:min(j.ended, uint64(len(j.ring)))] }

// dropped counts the requests that ended and are not remembered, those of processes before this one included.
func (j *journal) dropped() uint64 { return j.earlier + j.ended - uint64(len(j.kept())) }

func recordOf(r *engine.Request, state string) record {
	c := r.Caller.(*caller)
	return record{
		id: r.ID, external: c.external, adapter: r.Adapter, state: state, finish: engine.NotFinished, client: r.Client,
		number: c.number, prompt: r.PromptTokens, limit: r.MaxTokens, emitted: r.Emitted(),
		arrived: r.Arrived, admitted: r.Admitted, first: c.first,
	}
}

// maxNoted bounds the texts that a journal keeps of a request, in bytes.
const maxNoted = 256

// bounded returns s, or the beginning of it where it is longer than any id or name should be.
func bounded(s string) string {
	if len(s) <= maxNoted {
		return s
	}
	return strings.ToValidUTF8(s[:maxNoted], "") + "…"
}

var outcomeStates = [...]string{
	engine.OutcomeCompleted: ipc.RequestCompleted, engine.OutcomeFailed: ipc.RequestFailed, engine.OutcomeAborted: ipc.RequestAborted,
}
