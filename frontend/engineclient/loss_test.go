package engineclient

import (
	"testing"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
)

// roundTrip shows that an engine is sent to and heard.
func roundTrip(t *testing.T, f *Frontend, r *recorder, e *fakeEngine) {
	t.Helper()
	if err := f.Client(0).Abort(e.rank, "x"); err != nil {
		t.Fatalf("Abort: %v", err)
	}
	recv(t, e.inputs[0])
	e.say(t, 0, "x")
	if got, want := await(t, "outputs", r.outputs), (heard{0, e.rank, "x "}); got != want {
		t.Errorf("delivery = %+v, want %+v", got, want)
	}
}

// TestFrontend_EngineComesBack loses an engine and takes it again, in each of the ways in which one returns.
func TestFrontend_EngineComesBack(t *testing.T) {
	cases := []struct {
		name    string
		clients int
		comeUp  func(t *testing.T, f *Frontend, e *fakeEngine) *fakeEngine
	}{
		{"to the same addresses", 1, func(t *testing.T, _ *Frontend, e *fakeEngine) *fakeEngine { e.connect(t); return e }},
		{"to the same addresses, with a handshake begun and given up", 1, func(t *testing.T, f *Frontend, e *fakeEngine) *fakeEngine {
			begun := greetAt(t, f.Handshake(), e.rank)
			e.connect(t)
			_ = begun.hello.Close(atOnce()) // as a process does that doesn't need it
			return e
		}},
		{"by a handshake", 2, func(t *testing.T, f *Frontend, e *fakeEngine) *fakeEngine { return join(t, f, e.rank) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, events := record()
			f := listen(t, Options{Engines: 2, Clients: c.clients, KeepHandshake: true, Events: events})
			other, e := join(t, f, 0), join(t, f, 1)
			ready(t, f)
			await(t, "up", r.up)
			await(t, "up", r.up)
			e.vanish()
			await(t, "loss", r.lost)
			roundTrip(t, f, r, other)
			e = c.comeUp(t, f, e)
			if got := await(t, "up again", r.up); got != 1 {
				t.Errorf("engine %d came up, want 1", got)
			}
			roundTrip(t, f, r, e)
			roundTrip(t, f, r, other)
			if n := len(r.lost); n != 0 {
				t.Errorf("%d more losses, want one in all", n)
			}
		})
	}
}

// TestFrontend_EngineReplaced: an engine that comes back before the loss of the one before was noticed takes its place.
func TestFrontend_EngineReplaced(t *testing.T) {
	r, events := record()
	f := listen(t, Options{Engines: 1, KeepHandshake: true, Events: events})
	old := join(t, f, 0)
	await(t, "up", r.up)
	done := startCall(within(t), f, "sleep", nil)
	old.takeCall(t)
	e := join(t, f, 0)
	wantError(t, await(t, "loss", r.lost), zmtp.ErrReplaced)
	wantError(t, await(t, "end of the call", done).err, ErrNotConnected)
	await(t, "up again", r.up)
	ended(t, old.inputs[0])
	roundTrip(t, f, r, e)
}

func TestFrontend_EngineCoreDead(t *testing.T) {
	r, events := record()
	f := listen(t, Options{Engines: 2, Clients: 2, Events: events})
	e := join(t, f, 1)
	send(t, e.outputs[1], []byte(enginecore.EngineCoreDead))
	if got := await(t, "death", r.dead); got != [2]int{1, -1} {
		t.Errorf("client, rank = %v, want 1, -1", got)
	}
	e.say(t, 0, "x")
	send(t, e.outputs[0], []byte(enginecore.EngineCoreDead))
	if got := await(t, "death", r.dead); got != [2]int{0, 1} {
		t.Errorf("client, rank = %v, want 0, 1", got)
	}
}

// TestFrontend_LastWords: an engine whose input has ended is heard to the end before its loss is told.
func TestFrontend_LastWords(t *testing.T) {
	r, events := record()
	f := listen(t, Options{Engines: 1, Events: events})
	e := join(t, f, 0)
	ready(t, f)
	roundTrip(t, f, r, e)
	_ = e.inputs[0].Close(within(t)) // nothing is left to be sent there
	e.say(t, 0, "last")
	select {
	case <-r.lost:
		t.Fatal("the loss was told before the last words")
	case got := <-r.outputs:
		if want := (heard{0, 0, "last "}); got != want {
			t.Errorf("delivery = %+v, want %+v", got, want)
		}
	}
	_ = e.outputs[0].Close(within(t)) // flushed above
	await(t, "loss", r.lost)
}

// TestFrontend_Close_NoLoss: whoever closes is told of nothing.
func TestFrontend_Close_NoLoss(t *testing.T) {
	r, events := record()
	f := listen(t, Options{Engines: 1, Events: events})
	join(t, f, 0)
	ready(t, f)
	_ = f.Close(atOnce())
	if n := len(r.lost); n != 0 {
		t.Errorf("%d losses told, want none", n)
	}
}
