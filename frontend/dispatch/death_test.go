package dispatch

import (
	"errors"
	"io"
	"testing"

	"vllm-vcr/protocol/enginecore"
)

func TestDispatcher_EngineLost(t *testing.T) {
	for name, die := range map[string]func(*fake){
		"connection":       func(f *fake) { f.vanish() },
		"ENGINE_CORE_DEAD": func(f *fake) { f.say(f.out, []byte(enginecore.EngineCoreDead)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := &witness{}
			r := newRig(t, 2, w)
			streams := make([]*Stream, 6)
			for i := range streams {
				streams[i] = r.submit(t, request("a", 9))
			}
			r.engines[1].send(1, nil, tokens(streams[1].ID(), 7)) // names the connection's engine, too
			if c, err := streams[1].Next(within(t)); err != nil || len(c.Tokens) != 1 {
				t.Fatalf("first token: %+v, %v", c, err)
			}
			die(r.engines[1])
			for i, s := range streams {
				if s.Rank() != 1 {
					continue
				}
				a := drain(within(t), s)
				var dead *EngineDeadError
				if !errors.As(a.Err, &dead) || dead.Rank != 1 {
					t.Errorf("stream %d: %v, want an EngineDeadError of engine 1", i, a.Err)
				}
				s.Cancel() // too late
			}
			if c := await(t, "change", r.changes); c.rank != 1 || c.err == nil {
				t.Errorf("change = %+v, want engine 1 lost", c)
			}
			var dead *EngineDeadError
			if err := r.Health(); !errors.As(err, &dead) || dead.Rank != 1 {
				t.Errorf("Health = %v, want engine 1's death", err)
			}
			for range 4 {
				if s := r.submit(t, request("b", 9)); s.Rank() != 0 {
					t.Errorf("rank = %d, want the living engine's", s.Rank())
				}
			}
			if got := w.reasons(); len(got) != 3 || got[0] != enginecore.FinishError {
				t.Errorf("ends = %v, want three errors", got)
			}
		})
	}
}

func TestDispatcher_NoEngine(t *testing.T) {
	r := emptyRig(t, 1, nil)
	if _, err := r.Submit(request("a", 1)); !errors.Is(err, ErrNoEngine) {
		t.Errorf("before any engine: %v, want ErrNoEngine", err)
	}
	if err := r.Health(); !errors.Is(err, errNeverUp) {
		t.Errorf("Health = %v, want that it has not joined", err)
	}
	if err := r.Ready(atOnce()); err == nil {
		t.Error("Ready: no error without an engine")
	}
	if n := r.MaxModelLen(); n != 0 {
		t.Errorf("MaxModelLen = %d, want 0", n)
	}
	e := r.join(t, 0)
	await(t, "join", r.changes)
	e.say(e.out, []byte(enginecore.EngineCoreDead)) // before any output: it can only be that one
	await(t, "death", r.changes)
	if _, err := r.Submit(request("a", 1)); !errors.Is(err, ErrNoEngine) {
		t.Errorf("after the death: %v, want ErrNoEngine", err)
	}
}

// An engine that comes back takes requests again; what was asked of its predecessor stays ended.
func TestDispatcher_EngineReturns(t *testing.T) {
	r := newRig(t, 1, nil)
	old := r.submit(t, request("a", 9))
	r.engines[0].vanish()
	await(t, "loss", r.changes)
	e := r.join(t, 0)
	if c := await(t, "return", r.changes); c.err != nil {
		t.Fatalf("change = %v, want a return", c)
	}
	if err := r.Health(); err != nil {
		t.Errorf("Health = %v", err)
	}
	s := r.submit(t, request("b", 9))
	e.send(1, nil, finished(old.ID(), enginecore.FinishStop, 1), finished(s.ID(), enginecore.FinishStop, 1))
	if a := drain(within(t), s); a.Err != io.EOF {
		t.Errorf("new = %+v, want its end", a)
	}
	var dead *EngineDeadError
	if a := drain(within(t), old); !errors.As(a.Err, &dead) || len(a.Tokens) != 0 {
		t.Errorf("old = %+v, want an EngineDeadError", a)
	}
}

// What an engine said last doesn't count as its load once it has gone.
func TestDispatcher_StatsOfTheDead(t *testing.T) {
	w := &witness{}
	r := newRig(t, 1, w)
	e := r.engines[0]
	s := r.submit(t, request("a", 9))
	e.send(1, &enginecore.SchedulerStats{Running: 1}, tokens(s.ID(), 1))
	if _, err := s.Next(within(t)); err != nil {
		t.Fatal(err)
	}
	_ = e.in.Close(atOnce())
	await(t, "loss", r.changes)
	e.send(2, &enginecore.SchedulerStats{Running: 5})
	e.say(e.out, []byte(enginecore.EngineCoreDead)) // behind the stats
	await(t, "death", r.changes)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.stats) != 1 || len(w.left) == 0 {
		t.Errorf("%d stats and %d departures observed, want 1 and some", len(w.stats), len(w.left))
	}
	if got := r.Engines()[0].Running; got != 0 {
		t.Errorf("%d requests running at an engine that has gone, want 0", got)
	}
}

func TestDispatcher_Close(t *testing.T) {
	w := &witness{}
	r := newRig(t, 1, w)
	s := r.submit(t, request("a", 9))
	for range 2 {
		if err := r.Close(within(t)); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if a := drain(within(t), s); !errors.Is(a.Err, ErrClosed) {
		t.Errorf("stream = %+v, want ErrClosed", a)
	}
	if id := await(t, "abort", r.engines[0].aborts); id != s.ID() {
		t.Errorf("abort of %s, want of %s", id, s.ID())
	}
	if _, err := r.Submit(request("a", 9)); !errors.Is(err, ErrNoEngine) {
		t.Errorf("Submit: %v, want ErrNoEngine", err)
	}
	if got := w.reasons(); len(got) != 1 || got[0] != enginecore.FinishAbort {
		t.Errorf("ends = %v, want one abort", got)
	}
}

func TestNew_Errors(t *testing.T) {
	if _, err := New(Options{Handshake: "tcp://127.0.0.1:0"}); err == nil {
		t.Error("no error without engines")
	}
	if _, err := New(Options{Handshake: "nonsense", Engines: 1}); err == nil {
		t.Error("no error for an address that is none")
	}
}

func TestDispatcher_MaxModelLen(t *testing.T) {
	if n := newRig(t, 3, nil).MaxModelLen(); n != 4094 {
		t.Errorf("MaxModelLen = %d, want the smallest, 4094", n)
	}
}
