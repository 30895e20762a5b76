package dispatch

import (
	"errors"
	"fmt"
)

var (
	// ErrNoEngine refuses a request or a call because no engine is there for it.
	ErrNoEngine = errors.New("no engine is available")

	// ErrRank refuses a request for a rank that doesn't exist.
	ErrRank = errors.New("no such engine")

	// ErrCanceled ends a stream that its consumer gave up by [Stream.Cancel] or [Stream.Stop].
	ErrCanceled = errors.New("request canceled")

	// ErrClosed ends what is under way when the dispatcher is closed.
	ErrClosed = errors.New("dispatcher closed")

	// ErrLoRALoaded refuses to load an adapter under a name that is taken.
	ErrLoRALoaded = errors.New("adapter is loaded already")

	// ErrLoRAUnknown refuses to unload an adapter that isn't loaded.
	ErrLoRAUnknown = errors.New("adapter is not loaded")
)

// EngineDeadError ends the streams of an engine that is gone.
type EngineDeadError struct {
	Rank  int
	Cause error // what was seen of it
}

// Error names the engine and the cause.
func (e *EngineDeadError) Error() string {
	return fmt.Sprintf("engine %d is gone: %v", e.Rank, e.Cause)
}

// Unwrap is the cause.
func (e *EngineDeadError) Unwrap() error { return e.Cause }

// errDead is the cause where the engine said so itself.
var errDead = errors.New("it reported a fatal error")
