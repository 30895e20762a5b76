package main

import (
	"testing"
	"time"

	"vllm-vcr/protocol/enginecore"
)

const ms = time.Millisecond

// TestLateness has a request whose tokens come 1, 2 and 3 ms late as received, and the engine says half of that. The second
// output carries two tokens.
func TestLateness(t *testing.T) {
	var l lateness
	want := shape{ttft: 100 * ms, itl: 20 * ms}
	sent := time.Second
	s := slot{sent: sent}
	scheduled := enginecore.Event{Type: enginecore.EventScheduled, Time: sent.Seconds()}
	outputs := []struct {
		tokens int
		events []enginecore.Event
		at     time.Duration
	}{
		{1, []enginecore.Event{{Type: enginecore.EventQueued, Time: 0.5}, scheduled}, 101 * ms},
		{2, nil, 122 * ms},
		{1, nil, 163 * ms},
	}
	for i, o := range outputs {
		late := time.Duration(i+1) * ms
		m := moment{received: sent + o.at, said: sent + o.at - late/2}
		l.add(&want, &s, &enginecore.Output{Tokens: make([]uint32, o.tokens), Events: o.events}, m)
		s.seen += o.tokens
	}
	cases := []struct {
		name        string
		h           *hist
		n           uint64
		least, most time.Duration
	}{
		{"first", &l.first, 1, ms, ms},
		{"later", &l.later, 2, 2 * ms, 3 * ms},
		{"first by the engine", &l.engineFirst, 1, ms / 2, ms / 2},
		{"later by the engine", &l.engineLater, 2, ms, 3 * ms / 2},
		{"gap", &l.gap, 2, ms, 21 * ms}, // the gap behind two tokens is two gaps
	}
	for _, c := range cases {
		near := func(a, b time.Duration) bool { return (a - b).Abs() < time.Microsecond } // seconds as a float
		if c.h.n != c.n || !near(c.h.least, c.least) || !near(c.h.most, c.most) {
			t.Errorf("%s: n %d, %v to %v, want %d, %v to %v", c.name, c.h.n, c.h.least, c.h.most, c.n, c.least, c.most)
		}
	}
}

// TestLateness_NoEvents: an engine that sends no events is timed as received only.
func TestLateness_NoEvents(t *testing.T) {
	var l lateness
	l.add(&shape{}, &slot{}, &enginecore.Output{Tokens: []uint32{1}}, moment{received: ms, said: ms})
	if l.first.n != 1 || l.engineFirst.n != 0 {
		t.Errorf("%d as received, %d by the engine, want 1 and 0", l.first.n, l.engineFirst.n)
	}
}

func TestClock(t *testing.T) {
	a, b := newClock(), newClock()
	now := time.Now()
	if off := (a.at(now) - b.at(now)).Abs(); off > ms {
		t.Errorf("two clocks are %v apart", off)
	}
	if got := fromSeconds(1.5); got != 1500*ms {
		t.Errorf("1.5 s = %v", got)
	}
}
