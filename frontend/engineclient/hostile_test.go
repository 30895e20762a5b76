package engineclient

import (
	"strings"
	"testing"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
)

// refused waits for a refusal, and shows that the rest of the frontend goes on.
func refused(t *testing.T, r *recorder, want string) {
	t.Helper()
	if err := await(t, "refusal", r.refusals); !strings.Contains(err.Error(), want) {
		t.Errorf("refused: %q, want it to say %q", err, want)
	}
}

func hello(h enginecore.Hello) []byte { return enginecore.AppendHello(nil, h) }

// TestHandshake_Refuses gives a bad start to engine 1, while engine 0 goes on.
func TestHandshake_Refuses(t *testing.T) {
	cases := []struct {
		name     string
		identity []byte
		messages [][][]byte
		want     string
	}{
		{"no identity", nil, nil, "want the rank in 2 bytes"},
		{"long identity", []byte("engine"), nil, "want the rank in 2 bytes"},
		{"rank", identity(2), nil, "rank 2, want 0 to 1"},
		{"frames", identity(1), [][][]byte{{status("HELLO"), {}}}, "HELLO of 2 frames, want 1"},
		{"no message", identity(1), [][][]byte{{[]byte("HELLO")}}, "HELLO: handshake message"},
		{"order", identity(1), [][][]byte{{status("READY")}}, `status "READY", want "HELLO"`},
		{"twice", identity(1), [][][]byte{{status("HELLO")}, {status("HELLO")}}, `status "HELLO", want "READY"`},
		{"other status", identity(1), [][][]byte{{status(strings.Repeat("x", 100))}}, `xxx", want "HELLO"`},
		{"local", identity(1), [][][]byte{{hello(enginecore.Hello{Status: "HELLO", Local: true, Headless: true})}}, "local engine"},
		{"not headless", identity(1), [][][]byte{{hello(enginecore.Hello{Status: "HELLO"})}}, "isn't headless"},
		{"after READY", identity(1), [][][]byte{{status("HELLO")}, {status("READY")}, {{1}}}, "after READY"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, events := record()
			f := listen(t, Options{Engines: 2, Events: events})
			bad := dial(t, f.Handshake(), zmtp.Dealer, c.identity)
			for _, frames := range c.messages {
				send(t, bad, frames...)
			}
			refused(t, r, c.want)
			join(t, f, 0)
			if got := await(t, "up", r.up); got != 0 {
				t.Errorf("engine %d came up, want 0", got)
			}
		})
	}
}

func TestInput_Refuses(t *testing.T) {
	cases := []struct {
		name     string
		identity []byte
		frames   [][]byte
		want     string
	}{
		{"rank", identity(7), nil, "input 0: identity 0700: rank 7"},
		{"frames", identity(1), [][]byte{{}, {}}, "engine 1: registration of 2 frames, want 1"},
		{"empty", identity(1), [][]byte{{}}, "engine 1: "},
		{"array", identity(1), [][]byte{{0x90}}, "engine 1: "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, events := record()
			f := listen(t, Options{Engines: 2, Events: events})
			e := greetAt(t, f.Handshake(), 0)
			bad := dial(t, e.init.Inputs[0], zmtp.Dealer, c.identity)
			if c.frames != nil {
				send(t, bad, c.frames...)
			}
			refused(t, r, c.want)
			ended(t, bad)
			e.connect(t)
			send(t, e.hello, status("READY"))
			await(t, "up", r.up)
		})
	}
}

// TestInput_Refuses_More: an engine that speaks on its input is told off, and keeps its connection.
func TestInput_Refuses_More(t *testing.T) {
	r, events := record()
	f := listen(t, Options{Engines: 1, Events: events})
	e := join(t, f, 0)
	ready(t, f)
	send(t, e.inputs[0], []byte("more"))
	refused(t, r, "after its registration")
	roundTrip(t, f, r, e)
}

func TestOutput_Refuses(t *testing.T) {
	other := enginecore.AppendUtilityResult(nil, 2, 1, enginecore.NewCallID(1), nil)
	cases := []struct {
		name    string
		message []byte
		want    string
	}{
		{"empty", nil, "output 0: "},
		{"no msgpack", []byte{0xc1}, "output 0: "},
		{"cut", other[:5], "output 0: "},
		{"rank", other, "engine_index 2, want 0 to 1"},
		{"nearly dead", []byte(enginecore.EngineCoreDead + "!"), "output 0: "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, events := record()
			f := listen(t, Options{Engines: 2, Events: events})
			e := join(t, f, 0)
			send(t, e.outputs[0], c.message)
			refused(t, r, c.want)
			e.say(t, 0, "x")
			await(t, "the next message", r.outputs)
		})
	}
}

// TestDoor_Refuses: whoever doesn't speak ZMTP is told of as well.
func TestDoor_Refuses(t *testing.T) {
	r, events := record()
	f := listen(t, Options{Engines: 1, Events: events})
	if _, err := zmtp.Dial(within(t), f.Handshake(), zmtp.Options{Type: zmtp.Push}); err == nil {
		t.Error("a PUSH socket was taken at the handshake address")
	}
	refused(t, r, "PUSH")
}
