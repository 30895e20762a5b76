package dispatch

import (
	"errors"
	"io"
	"testing"
	"time"

	"vllm-vcr/frontend/engineclient"
	"vllm-vcr/protocol/enginecore"
)

// An engine that went a moment ago, which the balancer doesn't know yet, costs no request.
func TestSubmit_EngineJustGone(t *testing.T) {
	r := newRig(t, 2, nil)
	gone := r.Dispatcher.engines[0]
	gone.mu.Lock()
	gone.up = false
	gone.mu.Unlock()
	for range 3 {
		if s := r.submit(t, request("a", 1)); s.Rank() != 1 {
			t.Errorf("rank = %d, want 1", s.Rank())
		}
	}
	other := r.Dispatcher.engines[1]
	other.mu.Lock()
	other.up = false
	other.mu.Unlock()
	if _, err := r.Submit(request("a", 1)); !errors.Is(err, ErrNoEngine) {
		t.Errorf("both gone: %v, want ErrNoEngine", err)
	}
	if !other.present() {
		t.Error("an engine that is joining counts as gone")
	}
}

// A choice that finds no engine takes the ones before it along.
func TestSubmitAll_None(t *testing.T) {
	w := &witness{}
	r := newRig(t, 1, w)
	req := request("a", 1)
	req.Choices = 3
	req.Vary = func(choice int, _ *enginecore.SamplingParams) {
		if choice == 1 {
			r.engines[0].vanish()
			await(t, "loss", r.changes)
		}
	}
	if streams, err := r.SubmitAll(req); !errors.Is(err, ErrNoEngine) || streams != nil {
		t.Errorf("SubmitAll = %v, %v; want ErrNoEngine alone", streams, err)
	}
	if n := len(w.reasons()); n != 1 {
		t.Errorf("%d ends, want that of the first choice", n)
	}
}

// Before 0.33 the waiting requests include the skipped ones.
func TestDispatcher_OlderStats(t *testing.T) {
	v, err := enginecore.ParseVersion("0.27.1")
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{}
	d, err := New(Options{Handshake: "tcp://127.0.0.1:0", Engines: 1, Version: v, Observer: w})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(atOnce())
	delivered, streams := delivery(t, d, 1)
	delivered.Outputs.Stats = &enginecore.SchedulerStats{Waiting: 5, SkippedWaiting: 2}
	pass(t, d, delivered, streams)
	if got := w.stats[0]; got.Waiting != 3 || got.SkippedWaiting != 2 {
		t.Errorf("observed %d waiting and %d skipped, want 3 and 2", got.Waiting, got.SkippedWaiting)
	}
	if got := d.Engines()[0].Waiting; got != 5 {
		t.Errorf("%d waiting, want 5", got)
	}
}

// An engine that tells no time is timed by our clock.
func TestDispatcher_EngineWithoutClock(t *testing.T) {
	w := &witness{}
	d, err := New(Options{Handshake: "tcp://127.0.0.1:0", Engines: 1, Observer: w})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(atOnce())
	v, streams := delivery(t, d, 1)
	v.Outputs.Timestamp = 0
	pass(t, d, v, streams)
	v.Received = v.Received.Add(time.Second)
	pass(t, d, v, streams)
	steps, _ := w.seen()
	if gap := steps[1].Gaps[0]; gap < 0.999 || gap > 1.001 {
		t.Errorf("gap = %v s, want 1", gap)
	}
}

// The memory of a burst goes when its chunk is done with.
func TestStream_Burst(t *testing.T) {
	d := emptyRig(t, 1, nil).Dispatcher
	v, streams := delivery(t, d, 1)
	const outputs = 3 * keptCapacity
	for range outputs {
		d.deliver(v)
	}
	s := streams[0]
	if c, _, _ := s.Poll(); len(c.Tokens) != outputs || c.Outputs != outputs {
		t.Errorf("chunk of %d tokens, want %d", len(c.Tokens), outputs)
	}
	for range 2 {
		pass(t, d, v, streams)
	}
	if kept := cap(s.pending.Tokens) + cap(s.taken.Tokens); kept > 2*keptCapacity {
		t.Errorf("memory for %d tokens is kept, want at most %d", kept, 2*keptCapacity)
	}
}

// A connection that says DEAD before it said whose it is may be anybody's.
func TestDispatcher_DeadWithoutName(t *testing.T) {
	r := newRig(t, 2, nil)
	e := r.engines[0]
	e.say(e.out, []byte(enginecore.EngineCoreDead))
	s := r.submit(t, request("a", 1))
	r.engines[s.Rank()].send(1, nil, finished(s.ID(), enginecore.FinishStop, 1))
	if a := drain(within(t), s); a.Err != io.EOF {
		t.Errorf("stream = %+v, want its end", a)
	}
	d := r.Dispatcher
	d.dead(0, -1)
	if err := d.Health(); err != nil {
		t.Errorf("Health = %v", err)
	}
}

// Two outputs of a request in one message, of which the first ends it.
func TestDispatcher_OutputBehindTheEnd(t *testing.T) {
	w := &witness{}
	r := newRig(t, 1, w)
	s := r.submit(t, request("a", 9))
	r.engines[0].send(1, nil, finished(s.ID(), enginecore.FinishStop, 1), finished(s.ID(), enginecore.FinishLength, 2))
	a := drain(within(t), s)
	if len(a.Tokens) != 1 || a.Finish != enginecore.FinishStop || len(w.reasons()) != 1 {
		t.Errorf("answer = %+v with %d ends, want one token and one end", a, len(w.reasons()))
	}
}

// A message of an engine that has answered nothing and ends nothing is no news.
func TestDispatcher_NoOutputs(t *testing.T) {
	w := &witness{}
	d, err := New(Options{Handshake: "tcp://127.0.0.1:0", Engines: 1, Observer: w})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(atOnce())
	d.deliver(&engineclient.Delivery{Outputs: &enginecore.Outputs{}})
	if steps, ends := w.seen(); len(steps)+len(ends) != 0 {
		t.Errorf("%d steps and %d ends, want none", len(steps), len(ends))
	}
}
