package worker

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/logs"
	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/worker/engine"
)

// What one turn of the loop takes from its queue at most, before it makes a step. The queue holds as much: a reader
// that finds it full waits, and with it the frontend's socket.
const (
	maxInputs    = 1024
	maxInputTime = time.Millisecond
)

// maxBusy is how long the loop goes on without a pause.
const maxBusy = time.Millisecond

// input is one thing that reached the engine. All inputs, whoever sent them, go through one queue in order and are
// applied between two steps.
type input interface {
	apply(l *loop, now engine.Time)
}

// loop is the actor that owns an engine: nothing else touches what hangs below it, except for inputs, which anyone may
// send while the loop runs.
type loop struct {
	inputs   chan input
	deferred input         // taken from inputs, for the next turn; nil = none
	ended    chan struct{} // closed when the loop has ended and takes no more inputs

	clock   Clock
	alarm   *alarm
	single  bool        // the process has one P
	waited  engine.Time // when the loop last had to wait
	engine  *engine.Engine
	page    *ipc.Page
	outputs *outputs
	strain  *strain
	report  func(ipc.State)

	live     config.Live
	prepared *prepared
	faults   faults
	die      func() // ends this process as a crash does
	traced   bool   // a latency trace is in use

	utilities utilities
	drain     drain
	retiredC  chan struct{} // closed at the end of a drain after which the worker stays
	heldSince engine.Time   // 0 = nothing is held
	// strainTold is when the log last told whether the process is saturated.
	strainTold engine.Time
	log        *logs.Logger
	// logDropped counts the log lines of this process that nobody took.
	logDropped func() uint64
}

// PanicError is what a loop ends with when it panicked: a broken invariant of ours.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("panic in the engine: %v\n%s", e.Value, e.Stack)
}

// send hands in to the loop and waits for room in its queue. It reports false where the loop or ctx has ended.
func (l *loop) send(ctx context.Context, in input) bool {
	select {
	case l.inputs <- in:
		return true
	case <-l.ended:
		return false
	case <-ctx.Done():
		return false
	}
}

// run turns the loop until a drain is complete, or ctx ends: then what is left is aborted. After a panic it tells every
// client that the engine is dead.
func (l *loop) run(ctx context.Context) (err error) {
	defer close(l.ended)
	defer func() {
		if p := recover(); p != nil {
			l.outputs.broadcast([]byte(enginecore.EngineCoreDead))
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	var alarm <-chan struct{}
	for {
		first, err := l.wait(ctx, alarm)
		now := l.clock.Now()
		if err != nil {
			l.abortAll(now)
			return err
		}
		next := min(l.turn(now, first), l.measureStrain(now))
		if l.engine.Crashed() {
			return l.crash()
		}
		if l.drained(now) {
			l.abortAll(now)
			if !l.drain.stays {
				return nil
			}
			l.retire()
		}
		alarm = l.alarm.at(now, l.breathe(now, next))
	}
}

// breathe puts off by a moment what is due already, where the loop has not waited for maxBusy. A process of one P hears of
// what came over its sockets when it waits, else from Go's monitor thread every 10 ms: so long would arrivals, aborts and
// control calls take. With several Ps another one listens, and a wait might take those 10 ms itself.
func (l *loop) breathe(now, next engine.Time) engine.Time {
	switch {
	case !l.single:
	case next > now:
		l.waited = now
	case now-l.waited > maxBusy:
		l.waited = now
		return now + 1
	}
	return next
}

// wait returns the input that the next turn begins with, or nil when the alarm goes.
func (l *loop) wait(ctx context.Context, alarm <-chan struct{}) (input, error) {
	if in := l.deferred; in != nil {
		l.deferred = nil
		return in, nil
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case in := <-l.inputs:
		return in, nil
	case <-alarm:
		return nil, nil
	}
}

// turn applies what is queued, makes one step and sends what came of it. It returns when the next turn is due.
func (l *loop) turn(now engine.Time, first input) engine.Time {
	l.outputs.now = now
	l.applyQueued(now, first)
	next := l.engine.Step(now)
	l.utilities.answerWaiting(l, now)
	l.publish(now)
	l.outputs.flushTold()
	if !l.engine.Hung() {
		next = min(next, l.outputs.flush(now, l.load(), next > now))
	}
	next = min(next, l.measureHeld(now))
	if l.drain.active && !l.drain.retired {
		next = min(next, l.drain.deadline)
	}
	return next
}

// applyQueued gives a call of the supervisor a turn of its own: it sees what became of everything before it, and what
// comes after it sees what became of it.
func (l *loop) applyQueued(now engine.Time, first input) {
	if first == nil {
		return
	}
	raise(&l.page.InputsHigh, uint64(1+len(l.inputs)))
	first.apply(l, now)
	if isCall(first) {
		return
	}
	for n := 1; n < maxInputs; n++ {
		select {
		case in := <-l.inputs:
			if isCall(in) {
				l.deferred = in
				return
			}
			in.apply(l, now)
		default:
			return
		}
		if n%64 == 0 && l.clock.Now()-now > maxInputTime {
			return
		}
	}
}

// publish stores the counters where they outlive this process. It comes before any output of the turn is sent, and before any answer
// to a utility call, so that who has seen the end of a reply, or has had a later call answered, sees it counted.
func (l *loop) publish(now engine.Time) {
	c := l.engine.Counts()
	l.page.Received.Store(c.Received)
	l.page.Completed.Store(c.Completed)
	l.page.Failed.Store(c.Failed)
	l.page.Aborted.Store(c.Aborted)
	l.page.Merged.Store(c.Merged)
	l.page.Running.Store(l.engine.Running())
	l.page.Waiting.Store(l.engine.Waiting())
	l.page.LogDropped.Store(l.logDropped())
	l.publishFaults(c.Faults)
}

// measureStrain looks whether the loop keeps up, and returns when to look again.
func (l *loop) measureStrain(now engine.Time) engine.Time {
	next, changed := l.strain.worked(now, l.clock.Now())
	if changed && now-l.strainTold >= strainInterval {
		l.strainTold = now
		l.logStrain(l.page.Strain())
	}
	return next
}

// strainInterval is the shortest time between two lines of the log about it.
const strainInterval = time.Minute

func (l *loop) logStrain(s ipc.Strain) {
	message := "no longer saturated"
	if s.Saturated {
		message = "saturated: this process sets the pace, not what it simulates"
	}
	l.log.Info().Uint64("input_queue_high", s.InputsHigh).Uint64("output_queue_high_bytes", s.OutputHigh).Msg(message)
}

// heldInterval is how often what is held is looked at while nothing else happens.
const heldInterval = 100 * time.Millisecond

// measureHeld accounts for what slow readers hold up, and returns when to look again: as long as anything waits for a
// client that was held.
func (l *loop) measureHeld(now engine.Time) engine.Time {
	if l.heldSince > 0 {
		l.page.HeldNanos.Add(uint64(now - l.heldSince))
		l.heldSince = 0
	}
	holding := l.engine.Holding()
	if !holding && l.page.HeldBytes.Load() == 0 {
		return engine.Never
	}
	if holding {
		l.heldSince = now
	}
	l.page.HeldBytes.Store(l.outputs.queued())
	return now + heldInterval
}

func (l *loop) load() load {
	e := l.engine
	return load{running: e.Running(), waiting: e.Waiting(), skipped: e.Skipped(), usage: e.Usage()}
}

func (l *loop) abortAll(now engine.Time) {
	l.outputs.now = now
	l.engine.AbortAll(now)
	l.publish(now)
	l.outputs.hurry()
	l.outputs.flushTold()
	l.outputs.flush(now, l.load(), false)
}
