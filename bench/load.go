package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"vllm-vcr/frontend/engineclient"
)

// shape is what a load asks for.
type shape struct {
	engines   int
	slots     int           // requests that run at once on each engine
	prompt    int           // tokens of each prompt; 0 = shortPrompt
	tokens    int           // of each request
	over      time.Duration // the first requests are spread over this time; 0 = all at once
	ttft, itl time.Duration // what the engines were told, for lateness
}

// load keeps engines busy: it runs a fixed number of requests on each, and where one ends sends the next. It checks every
// answer.
type load struct {
	shape     shape
	clock     clock
	client    *engineclient.Client
	lanes     []*lane
	measuring atomic.Bool // requests sent now are to be timed
	stopping  atomic.Bool // requests that end are not followed by others
	drained   chan struct{}
	running   atomic.Int64 // requests
	failOnce  sync.Once
	failedC   chan struct{} // closed by fail
	err       error         // written before failedC is closed
}

func newLoad(s shape) *load {
	l := &load{shape: s, clock: newClock(), drained: make(chan struct{}, 1), failedC: make(chan struct{})}
	for rank := range s.engines {
		l.lanes = append(l.lanes, newLane(l, rank))
	}
	return l
}

// events are what a frontend is to tell the load.
func (l *load) events() engineclient.Events {
	return engineclient.Events{
		Outputs: func(d *engineclient.Delivery) { l.lanes[d.Outputs.EngineIndex].take(d) },
		Lost:    func(rank int, err error) { l.fail(lost(rank, err)) },
		Dead:    func(_, rank int) { l.fail(fmt.Errorf("engine %d said that it is dead", rank)) },
		Refused: func(err error) { l.fail(err) },
	}
}

// start sends the first requests, in turn to each engine.
func (l *load) start(ctx context.Context, client *engineclient.Client) error {
	l.client = client
	l.running.Store(int64(l.shape.engines * l.shape.slots))
	start := time.Now()
	for slot := range l.shape.slots {
		due := start.Add(l.shape.over * time.Duration(slot) / time.Duration(l.shape.slots))
		if wait := time.Until(due); wait > 0 {
			if err := l.wait(ctx, wait); err != nil {
				return err
			}
		}
		for _, a := range l.lanes {
			if err := a.begin(slot); err != nil {
				return err
			}
		}
	}
	return nil
}

// wait lets the load run for a while.
func (l *load) wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-l.failedC:
		return l.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stop lets the running requests end, which must come within the given time.
func (l *load) stop(ctx context.Context, within time.Duration) error {
	l.stopping.Store(true)
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-l.drained:
		return nil
	case <-l.failedC:
		return l.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return fmt.Errorf("%d requests have not ended after %v", l.running.Load(), within)
	}
}

// fail ends the load. The first reason stays.
func (l *load) fail(err error) {
	l.failOnce.Do(func() {
		l.err = err
		close(l.failedC)
	})
}

// ended enters that a request was not followed by another.
func (l *load) ended() {
	if l.running.Add(-1) == 0 {
		l.drained <- struct{}{}
	}
}

// totals are what all engines have sent so far.
type totals struct{ requests, tokens, outputs, messages, bytes uint64 }

func (l *load) totals() totals {
	var sum totals
	for _, a := range l.lanes {
		sum.requests += a.requests.Load()
		sum.tokens += a.tokens.Load()
		sum.outputs += a.outputs.Load()
		sum.messages += a.messages.Load()
		sum.bytes += a.bytes.Load()
	}
	return sum
}

func (t totals) since(earlier totals) totals {
	return totals{
		t.requests - earlier.requests, t.tokens - earlier.tokens, t.outputs - earlier.outputs,
		t.messages - earlier.messages, t.bytes - earlier.bytes,
	}
}

// errNothing is a window in which nothing came.
var errNothing = errors.New("nothing came while it was measured")
