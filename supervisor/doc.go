// Package supervisor runs a fleet of worker processes: it starts, watches, asks, changes and stops them.
//
// It guarantees that no worker outlives it, that a call to an engine ends by its deadline whatever state the engine's
// process is in, that a change reaches all engines or none, and that what an engine had counted is accounted for when
// its process dies. No request of a frontend ever passes through it, and it must never know what an engine simulates
// or what HTTP is: it meets its workers only in package ipc.
//
// One goroutine, [Fleet.Run], owns all state. Everything that happens to the fleet reaches it as an event: questions
// from the control API, frames from workers, the ends of processes, signals and timers.
package supervisor
