package main

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"vllm-vcr/frontend/engineclient"
	"vllm-vcr/protocol/enginecore"
)

// lane is the requests of one engine.
type lane struct {
	load *load
	rank int

	requests, tokens, outputs, messages, bytes atomic.Uint64 // so far; each message adds to them once

	mu      sync.Mutex // held over a whole message, and by whoever sends a first request
	request *request
	slots   []slot
	late    lateness
}

// slot is a place in which one request runs after the other.
type slot struct {
	generation uint32
	seen       int           // tokens so far
	timed      bool          // to be timed
	sent       time.Duration // CLOCK_MONOTONIC just before it was sent
	due        time.Duration // of its first token, by the engine's own events; 0 = not told
	last       time.Duration // when its last output was received
}

func newLane(l *load, rank int) *lane {
	return &lane{load: l, rank: rank, request: newRequest(cmp.Or(l.shape.prompt, shortPrompt), l.shape.tokens), slots: make([]slot, l.shape.slots)}
}

// begin sends the first request of a slot.
func (a *lane) begin(at int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.send(at)
}

// send sends the next request of a slot. It has a.mu.
func (a *lane) send(at int) error {
	s := &a.slots[at]
	*s = slot{generation: s.generation + 1, timed: a.load.measuring.Load()}
	payload := a.request.number(at, s.generation)
	s.sent = a.load.clock.now()
	err := a.load.client.AddEncoded(a.rank, payload)
	if errors.Is(err, engineclient.ErrNotConnected) {
		return lost(a.rank, err) // the event that tells of it may come later
	}
	return err
}

func lost(rank int, err error) error { return fmt.Errorf("engine %d was lost: %w", rank, err) }

// take enters one message.
func (a *lane) take(d *engineclient.Delivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var tokens, ended uint64
	m := moment{received: a.load.clock.at(d.Received), said: fromSeconds(d.Outputs.Timestamp)}
	for i := range d.Outputs.Requests {
		o := &d.Outputs.Requests[i]
		at, generation, ok := parseID(o.ID)
		if !ok || at >= len(a.slots) || a.slots[at].generation != generation {
			a.load.fail(fmt.Errorf("engine %d: output of the request %q, which isn't running", a.rank, o.ID))
			return
		}
		s := &a.slots[at]
		if s.timed && len(o.Tokens) > 0 {
			a.late.add(&a.load.shape, s, &o.Output, m)
		}
		s.seen += len(o.Tokens)
		tokens += uint64(len(o.Tokens))
		if o.Finish != enginecore.FinishNone {
			ended++
			a.finish(at, &o.Output)
		}
	}
	a.tokens.Add(tokens)
	a.requests.Add(ended)
	a.outputs.Add(uint64(len(d.Outputs.Requests)))
	a.messages.Add(1)
	a.bytes.Add(uint64(d.Bytes))
}

// finish checks a request that has ended, and sends the next. It has a.mu.
func (a *lane) finish(at int, o *enginecore.Output) {
	l := a.load
	if seen := a.slots[at].seen; seen != l.shape.tokens || o.Finish != enginecore.FinishLength {
		l.fail(fmt.Errorf("engine %d: a request ended with %d tokens and reason %v, want %d and length", a.rank, seen, o.Finish, l.shape.tokens))
		return
	}
	if l.stopping.Load() {
		l.ended()
		return
	}
	if err := a.send(at); err != nil {
		l.fail(err)
	}
}
