package supervisor

import (
	"errors"
	"fmt"

	"vllm-vcr/ipc"
)

// The states an engine is shown in. Those of a living worker are its own words, see [ipc.State]; the others are what the
// supervisor sees of it.
const (
	StateStarting     = ipc.StateStarting
	StateReady        = ipc.StateReady
	StateReconnecting = ipc.StateReconnecting
	StateDraining     = ipc.StateDraining
	StateDrained      = ipc.StateDrained
	StateFrozen       = "frozen" // lives, but let a call go unanswered
	StateDead         = "dead"   // its process has ended
	StateFailed       = "failed" // died too often to be started again
)

// EngineStatus is one engine as GET /engines shows it.
type EngineStatus struct {
	Index      int       `json:"index"`
	Rank       int       `json:"rank"`
	PID        int       `json:"pid"` // 0 while no process runs
	State      string    `json:"state"`
	Restarts   uint64    `json:"restarts"`
	Generation uint64    `json:"generation"` // number of the last change it applied
	Stats      ipc.Stats `json:"stats"`
	Lost       uint64    `json:"lost"` // requests that ended with a process; counted in requests_failed too
	Dropped    uint64    `json:"messages_dropped"`
	// What slow readers cost: bytes held at the moment, seconds any output was held, outputs that were merged.
	HeldBytes     uint64  `json:"held_bytes"`
	HeldSeconds   float64 `json:"held_seconds"`
	MergedOutputs uint64  `json:"merged_outputs"`
	// Saturated says that its process, and not what it simulates, sets the pace: it was busy for nearly all of the last second, or
	// outputs left late.
	Saturated bool `json:"saturated"`
	// High-water marks since the supervisor's start: inputs that waited for the engine, bytes of output that waited for one
	// client to read.
	InputsHigh uint64   `json:"input_queue_high"`
	OutputHigh uint64   `json:"output_queue_high_bytes"`
	Lateness   Lateness `json:"lateness"`
	// Goroutines of its process, at its last call.
	Goroutines uint64 `json:"goroutines"`
	// LogDropped counts log lines of its process that nobody took.
	LogDropped uint64 `json:"log_lines_dropped"`
	// JournalDropped counts finished requests that its journal has forgotten.
	JournalDropped uint64 `json:"journal_dropped"`
	// Faults that it was armed with: how often they have struck, by kind, and how many may strike yet.
	FaultsApplied ipc.FaultCounts `json:"faults_applied"`
	FaultsActive  uint64          `json:"faults_active"`
	Joined        string          `json:"joined,omitempty"` // how it joined its frontend
	Reason        string          `json:"reason,omitempty"` // why it is dead, failed or frozen
}

// Health is the fleet in one word.
type Health struct {
	Status string `json:"status"` // HealthStarting, HealthOK, HealthDegraded or HealthDraining
	// Engines names those that are not ready, by index and state.
	Engines []EngineHealth `json:"engines,omitempty"`
}

// EngineHealth is one engine that is not ready.
type EngineHealth struct {
	Index  int    `json:"index"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// The words of Health.Status.
const (
	HealthStarting = "starting" // no engine is in trouble, some have yet to join
	HealthOK       = "ok"       // every engine is ready
	HealthDegraded = "degraded" // an engine is dead, failed, frozen or reconnecting
	HealthDraining = "draining" // the fleet is shutting down
)

// GoneError says that an engine's process has ended.
type GoneError struct {
	Index, Rank int
	Reason      string
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("%s is gone: %s", name(e.Index, e.Rank), e.Reason)
}

// SilentError says that an engine lives but did not answer in time.
type SilentError struct {
	Index, Rank int
	Reason      string
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("%s does not answer: %s", name(e.Index, e.Rank), e.Reason)
}

// withReport adds to what an engine's error says what came of the call all the same.
func withReport(err error, report string) error {
	var gone *GoneError
	var silent *SilentError
	switch {
	case errors.As(err, &gone):
		return &GoneError{gone.Index, gone.Rank, gone.Reason + "; " + report}
	case errors.As(err, &silent):
		return &SilentError{silent.Index, silent.Rank, silent.Reason + "; " + report}
	}
	return fmt.Errorf("%w; %s", err, report)
}

// RefusedError says that an engine refused a change because of what it is using.
type RefusedError struct {
	Index, Rank int
	Reason      string
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %s", name(e.Index, e.Rank), e.Reason) }

// name is how messages speak of an engine: by its index, and by its rank where that differs.
func name(index, rank int) string {
	if index == rank {
		return fmt.Sprintf("engine %d", index)
	}
	return fmt.Sprintf("engine %d (rank %d)", index, rank)
}
