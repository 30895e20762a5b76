package engine

import (
	"slices"
	"time"
)

// FaultKind is what a fault does.
type FaultKind uint8

// The kinds. The first five strike requests, the others the engine itself.
const (
	FaultError         FaultKind = iota // the request ends with Error
	FaultLength                         // the request ends with Length
	FaultRepetition                     // the request ends with Repetition
	FaultStall                          // the request pauses
	FaultCrash                          // the engine's process is to die
	FaultHang                           // the engine stands still
	FaultSlowHandshake                  // the engine is late to join its frontend

	FaultKinds = iota // how many there are
)

// fatal says that a request does not outlive a fault of this kind.
func (k FaultKind) fatal() bool { return k <= FaultRepetition || k == FaultCrash }

// finish is the reason with which a request ends that is struck.
func (k FaultKind) finish() Finish {
	switch k {
	case FaultLength:
		return Length
	case FaultRepetition:
		return Repetition
	default:
		return Error
	}
}

// Fault is trouble that is in store for an engine. The caller fills the exported fields, hands it to [Engine.Arm] or to a
// request, and from then on may only read Applied.
type Fault struct {
	Kind FaultKind
	// Count is how many requests or handshakes it strikes, 0 = any number. A hang, and a crash AtOnce, have none.
	Count uint64
	// Duration is for how long it stays armed, 0 = until it is disarmed. It is time of the clock, whatever the time scale.
	Duration time.Duration
	// AfterTokens is how many tokens a request gets before it is struck. Shorter requests are spared.
	AfterTokens uint64
	// Delay is how long a stall lasts, or by how much a handshake is late.
	Delay time.Duration
	// AtOnce has a crash wait for no request.
	AtOnce bool
	// Applied is how often it has struck. It may begin above 0, where an engine before this one was struck.
	Applied uint64

	until Time
	// booked counts the requests that it will strike once they have their tokens. An end before that frees a place.
	booked uint64
}

// armed says that f strikes at now.
func (f *Fault) armed(now Time) bool {
	return now < f.until && (f.Count == 0 || f.Applied < f.Count)
}

// vacant says that f strikes one more request than those it waits for.
func (f *Fault) vacant(now Time) bool {
	return f.armed(now) && (f.Count == 0 || f.Applied+f.booked < f.Count)
}

// Arm puts a fault in force, for what arrives from now on.
func (e *Engine) Arm(now Time, f *Fault) {
	f.until = Never
	if f.Duration > 0 {
		f.until = now + f.Duration
	}
	switch {
	case f.AtOnce:
		e.apply(f)
		e.crashed = true
		return
	case f.Kind == FaultHang:
		e.apply(f)
	}
	e.faults = append(e.faults, f)
	e.standStill(now)
}

// Disarm takes a fault back. Requests that it has not struck yet run on unharmed.
func (e *Engine) Disarm(now Time, f *Fault) {
	f.until = min(f.until, now)
	e.dropFaults(now)
}

// dropFaults forgets the faults that are over. What stood still because of one goes on as from its end, however late this is.
func (e *Engine) dropFaults(now Time) {
	var end Time
	e.faults = slices.DeleteFunc(e.faults, func(f *Fault) bool {
		if f.armed(now) {
			return false
		}
		if f.Kind == FaultHang {
			end = max(end, min(f.until, now))
		}
		return true
	})
	e.standStill(end)
}

// faultEnd is when the next fault is over by itself.
func (e *Engine) faultEnd() Time {
	end := Never
	for _, f := range e.faults {
		end = min(end, f.until)
	}
	return end
}

// Hung says that a hang is in force: nothing that was made of the engine's outputs may leave.
func (e *Engine) Hung() bool {
	return slices.ContainsFunc(e.faults, func(f *Fault) bool { return f.Kind == FaultHang })
}

// Crashed says that a crash has struck: the engine does nothing any more, and its process is to die once the outputs it has
// are gone.
func (e *Engine) Crashed() bool { return e.crashed }

// Handshake counts a handshake with a frontend and returns by how much it is to be late.
func (e *Engine) Handshake(now Time) time.Duration {
	var late time.Duration
	for _, f := range e.faults {
		if f.Kind == FaultSlowHandshake && f.armed(now) {
			e.apply(f)
			late = min(late+f.Delay, longest)
		}
	}
	return late
}

// apply counts a strike.
func (e *Engine) apply(f *Fault) {
	f.Applied++
	e.counts.Faults[f.Kind]++
}
