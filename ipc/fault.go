package ipc

import "github.com/goccy/go-json"

// The kinds of faults that an engine can be told to run into.
const (
	FaultError         = "error"
	FaultLength        = "length"
	FaultRepetition    = "repetition"
	FaultStall         = "stall"
	FaultCrash         = "crash"
	FaultHang          = "hang"
	FaultSlowHandshake = "slow_handshake"
)

// FaultKinds are all kinds, in the order in which a page counts them. The rows are shared: do not change them.
var FaultKinds = [faultKinds]string{
	FaultError, FaultLength, FaultRepetition, FaultStall, FaultCrash, FaultHang, FaultSlowHandshake,
}

const faultKinds = 7

// MaxFaults is how many faults can be armed at once.
const MaxFaults = 64

// MaxFaultTime is the longest duration and delay of a fault, in ms: a year.
const MaxFaultTime = 365 * 24 * 3600 * 1000

// Fault is trouble that engines are to run into. What a kind has no use for is absent.
type Fault struct {
	ID          uint64  `json:"id"` // the number of the change that armed it
	Kind        string  `json:"kind"`
	Engine      *int    `json:"engine,omitempty"`       // by index; nil = all
	Count       uint64  `json:"count,omitempty"`        // requests, or handshakes, that it strikes on each engine; 0 = any number
	Duration    uint64  `json:"duration,omitempty"`     // ms that it stays armed; 0 = until it is cleared
	AfterTokens *uint64 `json:"after_tokens,omitempty"` // that a request gets before it is struck
	Delay       uint64  `json:"delay,omitempty"`        // ms
}

// AtOnce says that f is a crash that waits for no request.
func (f Fault) AtOnce() bool {
	return f.Kind == FaultCrash && f.Count == 0 && f.Duration == 0 && f.AfterTokens == nil
}

// ArmedFault is a fault with its place in the pages of its engines.
type ArmedFault struct {
	Fault
	Slot int `json:"slot"` // below MaxFaults
}

// FaultCounts is how often faults of each kind have struck, in the order of FaultKinds.
type FaultCounts [faultKinds]uint64

// Sum adds all kinds up.
func (c FaultCounts) Sum() uint64 {
	var sum uint64
	for _, n := range c {
		sum += n
	}
	return sum
}

// MarshalJSON writes an object with every kind.
func (c FaultCounts) MarshalJSON() ([]byte, error) {
	counts := make(map[string]uint64, len(c))
	for i, kind := range FaultKinds {
		counts[kind] = c[i]
	}
	return json.Marshal(counts)
}

// FaultCounts returns how often faults have struck the engine since the supervisor's start.
func (p *Page) FaultCounts() FaultCounts {
	var counts FaultCounts
	for i := range counts {
		counts[i] = p.FaultsApplied[i].Load()
	}
	return counts
}

// Applied returns how often a fault has struck the engine. It is 0 before the engine knows of it.
func (p *Page) Applied(f ArmedFault) uint64 {
	if slot := &p.faults[f.Slot]; slot.id.Load() == f.ID {
		return slot.applied.Load()
	}
	return 0
}

// Arm makes f the fault in its slot, and returns how often it has struck already, in a process before this one.
func (p *Page) Arm(f ArmedFault) uint64 {
	slot := &p.faults[f.Slot]
	if slot.id.Load() != f.ID {
		slot.applied.Store(0) // first: under its id it has never struck more often than it did
		slot.id.Store(f.ID)
	}
	return slot.applied.Load()
}

// SetApplied stores how often the fault in a slot has struck.
func (p *Page) SetApplied(slot int, n uint64) { p.faults[slot].applied.Store(n) }
