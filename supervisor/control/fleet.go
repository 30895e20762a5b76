package control

import (
	"context"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/supervisor"
)

// Fleet is the engines as the API sees them. Every method asks all engines unless it takes an index, which is below Len.
//
// An error that is a *[supervisor.GoneError] is answered with 500, a *[supervisor.SilentError] and the end of the
// context with 504, a *[supervisor.RefusedError] and [supervisor.ErrTooManyFaults] with 409, [supervisor.ErrNoFault] with
// 404, and any other with 500.
type Fleet interface {
	// Len returns the number of engines, which never changes.
	Len() int
	// Config returns the settings of engine 0.
	Config(ctx context.Context) (config.Live, error)
	// Patch changes all engines or none, and returns the settings after it.
	Patch(ctx context.Context, p config.Patch) (config.Live, error)
	// ResetConfig sets back what the processes were started with.
	ResetConfig(ctx context.Context) (config.Live, error)
	// Stats returns the sum of all engines.
	Stats(ctx context.Context) (ipc.Stats, error)
	// ResetStats sets the counters back to 0 and leaves the gauges.
	ResetStats(ctx context.Context) error
	// Drain has every engine refuse new requests, finish those it has within timeout seconds, abort the rest and end; then
	// the fleet has ended.
	Drain(ctx context.Context, timeout uint64) (ipc.Drain, error)
	// DrainEngine drains one engine, which then leaves its frontend and can still be asked.
	DrainEngine(ctx context.Context, index int, timeout uint64) (ipc.Drain, error)
	// ArmFault has all engines, or the one that the fault names, run into it, or none, and gives it an id.
	ArmFault(ctx context.Context, f ipc.Fault) (supervisor.FaultStatus, error)
	// Faults shows the faults that are active, and counts what faults did.
	Faults(ctx context.Context) (supervisor.Faults, error)
	// ClearFault takes a fault back, ClearFaults all of them.
	ClearFault(ctx context.Context, id uint64) error
	ClearFaults(ctx context.Context) error
	// EngineConfig returns the settings of one engine.
	EngineConfig(ctx context.Context, index int) (config.Live, error)
	// PatchEngine changes one engine and returns its settings after it.
	PatchEngine(ctx context.Context, index int, p config.Patch) (config.Live, error)
	// ResetEngineConfig sets back what the engine's process was started with.
	ResetEngineConfig(ctx context.Context, index int) (config.Live, error)
	// EngineStats returns the counts of one engine.
	EngineStats(ctx context.Context, index int) (ipc.Stats, error)
	// ResetEngineStats sets the counters of one engine back to 0 and leaves its gauges.
	ResetEngineStats(ctx context.Context, index int) error
	// Requests returns the newest requests that match q, at most q.Limit.
	Requests(ctx context.Context, q ipc.RequestQuery) (supervisor.Requests, error)
	// EngineRequests returns those of one engine.
	EngineRequests(ctx context.Context, index int, q ipc.RequestQuery) (supervisor.Requests, error)
	// Engines shows every engine, whatever its state, within about a second.
	Engines(ctx context.Context) []supervisor.EngineStatus
	// Health sums them up, within about a second.
	Health(ctx context.Context) supervisor.Health
}

// LogFilter is the log filter of all processes.
type LogFilter interface {
	// Filter returns the filter in force in its normal form.
	Filter() string
	// SetFilter replaces it and returns the normal form of the new one. For a filter that cannot be parsed the error is
	// a [logs.ErrFilter] and nothing changes.
	SetFilter(ctx context.Context, filter string) (string, error)
}
