package dispatch

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"vllm-vcr/protocol/enginecore"
)

// Stream is the answer to one request, for one consumer: Poll and Next must not be called concurrently. Cancel and Stop may be
// called at any time from any goroutine. A stream that isn't read to its end must be given up by one of the two.
type Stream struct {
	owner  *Dispatcher
	engine *engine
	id     string // at the engine
	choice int

	mu      sync.Mutex
	wakeC   chan struct{} // capacity 1: filled when there is something new. Never closed
	pending Chunk         // where some is set
	some    bool
	decided bool  // how the stream ends; nothing may change that
	end     error // what comes after pending; nil = more
	history history

	taken Chunk // the consumer's
}

func newStream(owner *Dispatcher, id string, choice int, h history) *Stream {
	return &Stream{owner: owner, id: id, choice: choice, wakeC: make(chan struct{}, 1), history: h}
}

// ID is the request's at the engine.
func (s *Stream) ID() string { return s.id }

// Rank is that of the engine.
func (s *Stream) Rank() int { return s.engine.rank }

// Choice is the number of the stream among those that one call made.
func (s *Stream) Choice() int { return s.choice }

// Poll takes what there is; false if there is nothing yet. After the last chunk, which has a finish reason, the error is io.EOF; it is
// an [EngineDeadError], ErrCanceled or ErrClosed where the request ended without one, and any other where the engine's answer
// could not be read.
func (s *Stream) Poll() (Chunk, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.some {
		return Chunk{}, false, s.end
	}
	s.pending, s.taken = s.taken, s.pending
	s.pending.reset()
	s.some = false
	return s.taken, true, nil
}

// Next is Poll, but waits until there is something or ctx ends, whose cause is then the error; the stream goes on in that case.
func (s *Stream) Next(ctx context.Context) (Chunk, error) {
	for {
		c, ok, err := s.Poll()
		if ok || err != nil {
			return c, err
		}
		select {
		case <-s.wakeC:
		case <-ctx.Done():
			return Chunk{}, fmt.Errorf("await output: %w", context.Cause(ctx))
		}
	}
}

// Cancel gives the request up: the engine is told to abort it, and the stream ends with ErrCanceled. It does nothing if the
// stream's end was decided before.
func (s *Stream) Cancel() { s.giveUp(enginecore.FinishAbort, ErrCanceled, true) }

// Stop is Cancel for a request whose answer is complete as far as it came, because its text reached a stop string: it counts
// as one that stopped.
func (s *Stream) Stop() { s.giveUp(enginecore.FinishStop, ErrCanceled, true) }

// giveUp ends the stream from this side, unless its end was decided before. What was not taken yet is kept if err isn't the
// consumer's own wish.
func (s *Stream) giveUp(reason enginecore.FinishReason, err error, abort bool) {
	ended, ok := s.decide(reason, time.Now())
	if !ok {
		return
	}
	s.engine.remove(s)
	s.owner.observer.Ended(s.engine.rank, &ended)
	if abort {
		_ = s.owner.client.Abort(s.engine.rank, s.id) // an engine that isn't there has nothing to abort
	}
	s.close(err)
}

// decide claims the right to end the stream; false if somebody else has it.
func (s *Stream) decide(reason enginecore.FinishReason, now time.Time) (End, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.decided {
		return End{}, false
	}
	s.decided = true
	return s.history.end(reason, now), true
}

// close lets the consumer see the end.
func (s *Stream) close(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == ErrCanceled {
		s.pending, s.some = Chunk{}, false
	}
	s.end = err
	s.wake()
}

// account enters an output into the stream's history and the step's; false if the stream has ended. The end of a request that
// the output finishes is decided by it, and appended to the step's.
func (s *Stream) account(o *enginecore.Output, at moment, step *step) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.decided {
		return false
	}
	s.history.output(o, at, &step.Step)
	if o.Finish != enginecore.FinishNone {
		s.decided = true
		step.ends = append(step.ends, s.history.end(o.Finish, at.received))
	}
	return true
}

// push hands an output to the consumer. On an error the stream has not ended, unless by that output.
func (s *Stream) push(o *enginecore.Output, aux [][]byte, received time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return nil // given up since
	}
	err := s.pending.add(o, aux, received)
	s.some = s.some || err == nil
	switch {
	case o.Finish == enginecore.FinishNone:
	case err != nil:
		s.end = err
	default:
		s.end = io.EOF
	}
	s.wake()
	return err
}

// wake has s.mu.
func (s *Stream) wake() {
	select {
	case s.wakeC <- struct{}{}:
	default: // it was told already
	}
}

// wakeBy has the stream wake c from now on.
func (s *Stream) wakeBy(c chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakeC = c
	s.wake()
}
