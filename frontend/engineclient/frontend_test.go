package engineclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"

	"github.com/google/go-cmp/cmp"
)

func TestFrontend_RequestAndAnswer(t *testing.T) {
	for name, address := range map[string]string{"tcp": "tcp://127.0.0.1:0", "ipc": "ipc://" + t.TempDir() + "/hs"} {
		t.Run(name, func(t *testing.T) {
			r, events := record()
			f := listen(t, Options{Handshake: address, Engines: 1, Events: events})
			e := join(t, f, 0)
			ready(t, f)
			sampling := enginecore.DefaultSampling()
			want := enginecore.Request{ID: "a", PromptTokens: []uint32{1, 2, 3}, Sampling: &sampling}
			if err := f.Client(0).Add(0, &want); err != nil {
				t.Fatalf("Add: %v", err)
			}
			frames := recv(t, e.inputs[0])
			if len(frames) != 2 || string(frames[0]) != string(frameAdd) {
				t.Fatalf("engine got %d frames, type %x, want an ADD of 2", len(frames), frames[0])
			}
			var got enginecore.Request
			if err := enginecore.DecodeRequest(frames[1], &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.PromptTokens, got.PromptTokens); got.ID != "a" || diff != "" {
				t.Errorf("engine got request %q, prompt (-want +got):\n%s", got.ID, diff)
			}
			e.say(t, 0, "a", "b")
			if diff := cmp.Diff(heard{IDs: "a b "}, await(t, "outputs", r.outputs)); diff != "" {
				t.Errorf("delivery (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFrontend_Clients has two API servers and two engines: what goes through one client is answered there.
func TestFrontend_Clients(t *testing.T) {
	r, events := record()
	f := listen(t, Options{Engines: 2, Clients: 2, Events: events})
	engines := []*fakeEngine{join(t, f, 0), join(t, f, 1)}
	ready(t, f)
	for rank, e := range engines {
		for client := range 2 {
			id := fmt.Sprintf("%d-%d", rank, client)
			if err := f.Client(client).Add(rank, &enginecore.Request{ID: id}, []byte("tensor")); err != nil {
				t.Fatalf("Add: %v", err)
			}
			frames := recv(t, e.inputs[client])
			var got enginecore.Request
			if err := enginecore.DecodeRequest(frames[1], &got); err != nil {
				t.Fatal(err)
			}
			if got.ID != id || got.ClientIndex != uint32(client) || string(frames[2]) != "tensor" {
				t.Errorf("request %q of client %d with %q, want %q of client %d with its tensor", got.ID, got.ClientIndex, frames[2], id, client)
			}
			e.say(t, client, id)
			if diff := cmp.Diff(heard{client, rank, id + " "}, await(t, "outputs", r.outputs)); diff != "" {
				t.Errorf("delivery (-want +got):\n%s", diff)
			}
		}
	}
}

func TestFrontend_Delivery(t *testing.T) {
	seen := make(chan Delivery, 1)
	f := listen(t, Options{Engines: 1, Events: Events{Outputs: func(d *Delivery) {
		kept := *d
		kept.Aux = [][]byte{append([]byte(nil), d.Aux[0]...)}
		seen <- kept
	}}})
	e := join(t, f, 0)
	before := time.Now()
	var b enginecore.Batch
	b.Reset(enginecore.Version{}, 0)
	b.Token(enginecore.EncodeID("a"), []uint32{7})
	message := b.Finish(nil, 1)
	send(t, e.outputs[0], message, []byte("tensor"))
	d := await(t, "outputs", seen)
	if d.Received.Before(before) || d.Bytes != len(message)+6 || string(d.Aux[0]) != "tensor" {
		t.Errorf("received at %v, %d bytes, aux %q; want after %v, %d, tensor", d.Received, d.Bytes, d.Aux, before, len(message)+6)
	}
}

func TestClient_Abort(t *testing.T) {
	f := listen(t, Options{Engines: 1})
	e := join(t, f, 0)
	ready(t, f)
	if err := f.Client(0).Abort(0, "a", "b"); err != nil {
		t.Fatalf("Abort: %v", err)
	}
	frames := recv(t, e.inputs[0])
	ids, err := enginecore.DecodeAbort(frames[1])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, ids); diff != "" || string(frames[0]) != string(frameAbort) {
		t.Errorf("type %x, ids (-want +got):\n%s", frames[0], diff)
	}
}

func TestClient_NoSuchEngine(t *testing.T) {
	f := listen(t, Options{Engines: 2})
	if err := f.Client(0).Abort(0, "a"); !errors.Is(err, ErrNotConnected) {
		t.Errorf("abort at an engine that isn't there: %v, want %v", err, ErrNotConnected)
	}
	for _, rank := range []int{-1, 2} {
		if err := f.Client(0).Abort(rank, "a"); err == nil || !strings.Contains(err.Error(), "want 0 to 1") {
			t.Errorf("abort at engine %d: %v, want one that says 0 to 1", rank, err)
		}
	}
	if got := f.Client(0).Queued(0); got != 0 {
		t.Errorf("queued for an engine that isn't there = %d, want 0", got)
	}
}

// TestClient_Queued sends more than the kernel takes to an engine that doesn't read.
func TestClient_Queued(t *testing.T) {
	f := listen(t, Options{Engines: 1})
	join(t, f, 0)
	ready(t, f)
	payload := make([]byte, 64<<20)
	if err := f.Client(0).AddEncoded(0, payload); err != nil {
		t.Fatalf("AddEncoded: %v", err)
	}
	if got := f.Client(0).Queued(0); got <= 0 || got > int64(len(payload))+64 {
		t.Errorf("queued = %d, want up to the %d bytes sent", got, len(payload))
	}
}

func TestFrontend_Ready_NamesWhatIsMissing(t *testing.T) {
	r, events := record()
	f := listen(t, Options{Engines: 12, Clients: 2, Events: events})
	e := greetAt(t, f.Handshake(), 0)
	e.connect(t) // but says no READY
	join(t, f, 1)
	await(t, "engine 1 up", r.up)
	stranger := dial(t, f.Handshake(), zmtp.Dealer, identity(99))
	await(t, "refusal", r.refusals)
	ended(t, stranger)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	err := f.Ready(ctx)
	for _, want := range []string{"engine 0: ", "engine 2: not registered at input 0", "and 3 more", "enough", "rank 99, want 0 to 11"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("error = %q, want it to say %q", err, want)
		}
	}
	if strings.Contains(fmt.Sprint(err), "engine 1:") {
		t.Errorf("error = %q, want nothing of engine 1", err)
	}
}

func TestFrontend_Ready_Closed(t *testing.T) {
	f := listen(t, Options{Engines: 1})
	if err := f.Close(t.Context()); err != nil {
		t.Fatalf("Close: %v", err)
	}
	wantError(t, f.Ready(within(t)), zmtp.ErrClosed)
	if err := f.Close(t.Context()); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestFrontend_Registration(t *testing.T) {
	f := listen(t, Options{Engines: 2})
	join(t, f, 0)
	join(t, f, 1)
	ready(t, f)
	got, ok := f.Registration(1)
	if diff := cmp.Diff(*registration(1), got); !ok || diff != "" {
		t.Errorf("registration of 1: %v (-want +got):\n%s", ok, diff)
	}
	for _, rank := range []int{-1, 2} {
		if _, ok := f.Registration(rank); ok {
			t.Errorf("engine %d has a registration", rank)
		}
	}
}

// TestFrontend_HandshakeCloses: vLLM's frontends leave the handshake address when all engines are up.
func TestFrontend_HandshakeCloses(t *testing.T) {
	f := listen(t, Options{Engines: 1})
	e := join(t, f, 0)
	ready(t, f)
	ended(t, e.hello)
	f.leaving.Wait()
	if nc, err := net.Dial("tcp", strings.TrimPrefix(f.Handshake(), "tcp://")); err == nil {
		_ = nc.Close()
		t.Error("handshake address still accepts")
	}
}

func TestFrontend_Close_Flushes(t *testing.T) {
	f := listen(t, Options{Engines: 1})
	e := join(t, f, 0)
	ready(t, f)
	for range 100 {
		if err := f.Client(0).AddEncoded(0, make([]byte, 10_000)); err != nil {
			t.Fatal(err)
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- f.Close(within(t)) }()
	for i := range 100 {
		if got := len(recv(t, e.inputs[0])[1]); got != 10_000 {
			t.Fatalf("message %d of %d bytes, want 10000", i, got)
		}
	}
	_ = e.inputs[0].Close(atOnce())
	if err := await(t, "Close", closed); err != nil {
		t.Errorf("Close: %v", err)
	}
	wantError(t, f.Client(0).Abort(0, "a"), ErrNotConnected)
}

func TestListen_Refuses(t *testing.T) {
	cases := []struct {
		name    string
		options Options
		want    []string
	}{
		{"counts", Options{Handshake: "tcp://127.0.0.1:0", Clients: 257}, []string{"engines: 0, want 1 to 65536", "clients: 257, want 0 to 256"}},
		{"scheme", Options{Handshake: "udp://127.0.0.1:1", Engines: 1}, []string{"handshake address", "want tcp://host:port"}},
		{"host", Options{Handshake: "tcp://192.0.2.1:0", Engines: 1}, []string{"input 0", "192.0.2.1"}},
		{"folder", Options{Handshake: "ipc:///nowhere/at/all", Engines: 1}, []string{"input 0", "/nowhere/at/all"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Listen(c.options)
			for _, want := range c.want {
				if !strings.Contains(fmt.Sprint(err), want) {
					t.Errorf("error = %v, want it to say %q", err, want)
				}
			}
		})
	}
}
