package main

import (
	"time"

	"vllm-vcr/protocol/enginecore"
)

// moment is when a message was received and when its engine says that it was made, both by CLOCK_MONOTONIC.
type moment struct{ received, said time.Duration }

// lateness compares when tokens come with when they should. Token k of a request, counted from 0, should come TTFT + k·ITL after
// the request: so what is late once and never catches up counts with every token.
//
// Each is measured twice. As received: from just before the request was sent to just after the message was read, with both
// ways through the kernel and bench's own delays in it. By the engine: from the SCHEDULED event of the request to the
// timestamp of the message, with nothing in it but the engine's pacing.
type lateness struct {
	first, later             hist // as received
	engineFirst, engineLater hist // by the engine; empty if it sends no events
	gap                      hist // between two outputs as received, less the ITL
}

// add enters an output. s has seen the tokens before it.
func (l *lateness) add(want *shape, s *slot, o *enginecore.Output, m moment) {
	if s.seen == 0 {
		if at := scheduled(o); at > 0 {
			s.due = at + want.ttft
		}
	}
	pace := time.Duration(s.seen) * want.itl
	received, engine := &l.first, &l.engineFirst
	if s.seen > 0 {
		received, engine = &l.later, &l.engineLater
		l.gap.add(m.received - s.last - want.itl)
	}
	received.add(m.received - s.sent - want.ttft - pace)
	if s.due > 0 {
		engine.add(m.said - s.due - pace)
	}
	s.last = m.received
}

// scheduled is when the engine took the request up, 0 if it doesn't say.
func scheduled(o *enginecore.Output) time.Duration {
	for _, e := range o.Events {
		if e.Type == enginecore.EventScheduled {
			return fromSeconds(e.Time)
		}
	}
	return 0
}
