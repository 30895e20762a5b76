package worker

import (
	"time"

	"vllm-vcr/ipc"
	"vllm-vcr/worker/engine"
)

// drain is a shutdown in progress, or the end of the engine's work alone.
type drain struct {
	active   bool
	deadline engine.Time
	stays    bool // at its end the worker leaves its frontend and goes on answering calls
	retired  bool // that end has come
}

// drainInput is a signal's drain, after which the worker leaves.
type drainInput struct{ timeout time.Duration }

func (in drainInput) apply(l *loop, now engine.Time) { l.beginDrain(now, in.timeout, false) }

// beginDrain has new requests refused; those there are have until the time-out. Of two drains each keeps its word: the earlier
// deadline counts, and the worker leaves if either wants it to.
func (l *loop) beginDrain(now engine.Time, timeout time.Duration, stays bool) ipc.Drain {
	unfinished := l.engine.Running() + l.engine.Waiting()
	if l.drain.active {
		l.drain.deadline = min(l.drain.deadline, now+timeout)
		l.drain.stays = l.drain.stays && stays
		return ipc.Drain{Unfinished: unfinished, Timeout: ipc.WholeSeconds(l.drain.deadline - now)}
	}
	l.drain = drain{active: true, deadline: now + timeout, stays: stays}
	l.engine.Drain()
	l.report(ipc.State{State: ipc.StateDraining})
	message := "shutting down"
	if stays {
		message = "draining"
	}
	l.log.Info().Uint64("unfinished", unfinished).Dur("timeout", timeout).Msg(message)
	return ipc.Drain{Unfinished: unfinished, Timeout: ipc.WholeSeconds(timeout)}
}

// drained says that a drain has nothing left to wait for.
func (l *loop) drained(now engine.Time) bool {
	d := &l.drain
	if !d.active || d.retired && d.stays {
		return false
	}
	return l.engine.Idle() || now >= d.deadline
}

// retire has the frontend left. The loop turns on, for calls.
func (l *loop) retire() {
	l.drain.retired = true
	close(l.retiredC)
}
