package zmtp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type leaving struct {
	identity string
	err      error
}

// routerFor returns a router and the channel of its leaving peers.
func routerFor(t *testing.T) (*RouterSocket, <-chan leaving) {
	t.Helper()
	leftC := make(chan leaving, 100)
	r, err := ListenRouter("tcp://127.0.0.1:0", Options{
		OnLeave: func(identity []byte, err error) { leftC <- leaving{string(identity), err} },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(atOnce()) })
	return r, leftC
}

func receiveFrom(t *testing.T, r *RouterSocket) (identity string, frames []string) {
	t.Helper()
	id, b, err := r.Recv()
	if err != nil {
		t.Fatalf("Recv: %v", err)
	}
	return string(id), texts(b)
}

func TestRouterSocket_Exchange(t *testing.T) {
	r, _ := routerFor(t)
	dealers := map[string]*Conn{}
	for i := range 3 {
		id := string([]byte{byte(i), 0})
		dealers[id] = dial(t, r.Address(), Options{Type: Dealer, Identity: []byte(id)})
		send(t, dealers[id], "hello", id)
	}
	for range dealers {
		id, frames := receiveFrom(t, r)
		if diff := cmp.Diff([]string{"hello", id}, frames); diff != "" {
			t.Errorf("message of %x (-want +got):\n%s", id, diff)
		}
		if err := r.Send([]byte(id), []byte("welcome "+id)); err != nil {
			t.Error(err)
		}
	}
	for id, d := range dealers {
		if got := receive(t, d); !cmp.Equal(got, []string{"welcome " + id}) {
			t.Errorf("answer to %x = %q", id, got)
		}
	}
}

func TestRouterSocket_UnnamedPeers(t *testing.T) {
	r, _ := routerFor(t)
	seen := map[string]bool{}
	for i := range 3 {
		d := dial(t, r.Address(), Options{Type: Dealer})
		send(t, d, fmt.Sprint(i))
		id, _ := receiveFrom(t, r)
		if len(id) != 5 || id[0] != 0 || seen[id] {
			t.Errorf("identity = %x, want a new one of 5 bytes that starts with 0", id)
		}
		seen[id] = true
		if err := r.Send([]byte(id), []byte("back")); err != nil {
			t.Error(err)
		}
		receive(t, d)
	}
}

func TestRouterSocket_UnknownPeer(t *testing.T) {
	r, leftC := routerFor(t)
	wantError(t, r.Send([]byte{7, 0}, []byte("x")), ErrUnknownPeer, "identity 0700")
	d := dial(t, r.Address(), Options{Type: Dealer, Identity: []byte{7, 0}})
	send(t, d, "x")
	receiveFrom(t, r)
	closeEnd(t, r, d)
	if got := await(t, "leaving", leftC); got.identity != "\x07\x00" || !errors.Is(got.err, io.EOF) {
		t.Errorf("left: %x, %v; want 0700, EOF", got.identity, got.err)
	}
	wantError(t, r.Send([]byte{7, 0}, []byte("x")), ErrUnknownPeer, "identity 0700")
}

// closeEnd closes a dealer whose last message the router still lends out.
func closeEnd(t *testing.T, r *RouterSocket, d *Conn) {
	t.Helper()
	other := dial(t, r.Address(), Options{Type: Dealer, Identity: []byte("other")})
	send(t, other, "x")
	_ = d.Close(atOnce())
	receiveFrom(t, r)
}

func TestRouterSocket_Takeover(t *testing.T) {
	r, leftC := routerFor(t)
	id := []byte{0, 0}
	old := dial(t, r.Address(), Options{Type: Dealer, Identity: id})
	send(t, old, "old")
	receiveFrom(t, r)
	renewed := dial(t, r.Address(), Options{Type: Dealer, Identity: id})
	send(t, renewed, "new")
	if got, frames := receiveFrom(t, r); got != string(id) || !cmp.Equal(frames, []string{"new"}) {
		t.Errorf("message = %x %q, want that of the newer connection", got, frames)
	}
	if got := await(t, "leaving", leftC); !errors.Is(got.err, ErrReplaced) {
		t.Errorf("left: %v, want replaced", got.err)
	}
	if _, err := old.Recv(); err == nil {
		t.Error("the old connection goes on")
	}
	if err := r.Send(id, []byte("answer")); err != nil {
		t.Error(err)
	}
	if got := receive(t, renewed); !cmp.Equal(got, []string{"answer"}) {
		t.Errorf("answer = %q", got)
	}
}

func TestRouterSocket_Close_Flushes(t *testing.T) {
	r, _ := routerFor(t)
	const peers, messages = 3, 1000
	dealers := make([]*Conn, peers)
	for i := range dealers {
		dealers[i] = dial(t, r.Address(), Options{Type: Dealer, Identity: []byte{byte(i)}})
		send(t, dealers[i], "x")
		receiveFrom(t, r)
	}
	body := bytes.Repeat([]byte("b"), 1000)
	for i := range dealers {
		for range messages {
			if err := r.Send([]byte{byte(i)}, body); err != nil {
				t.Fatal(err)
			}
		}
	}
	closedC := make(chan error, 1)
	go func() { closedC <- r.Close(within(t)) }()
	for _, d := range dealers {
		for range messages {
			receive(t, d)
		}
		if _, err := d.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("after the last message: %v, want EOF", err)
		}
	}
	if err := await(t, "Close", closedC); err != nil {
		t.Errorf("Close = %v, want nil", err)
	}
	if _, _, err := r.Recv(); !errors.Is(err, ErrClosed) {
		t.Errorf("Recv = %v, want closed", err)
	}
}

func TestRouterSocket_Close_TellsWhatWasUnsent(t *testing.T) {
	r, _ := routerFor(t)
	d := dial(t, r.Address(), Options{Type: Dealer, Identity: []byte("slow")})
	send(t, d, "x")
	receiveFrom(t, r)
	for range 64 {
		if err := r.Send([]byte("slow"), make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, r.Close(atOnce()), context.Canceled, "bytes unsent")
}

func TestPuller_FairAndInOrder(t *testing.T) {
	p, err := ListenPull("tcp://127.0.0.1:0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	const peers, messages = 3, 5000
	for i := range peers {
		push := dial(t, p.Address(), Options{Type: Push})
		for n := range messages {
			send(t, push, fmt.Sprint(i), fmt.Sprint(n))
		}
	}
	next := map[string]int{}
	for range peers * messages {
		frames, err := p.Recv()
		if err != nil {
			t.Fatal(err)
		}
		from, number := string(frames[0]), string(frames[1])
		if want := fmt.Sprint(next[from]); number != want {
			t.Fatalf("message %s of %s, want %s", number, from, want)
		}
		next[from]++
	}
}

func TestPuller_PeerLeavesAndClose(t *testing.T) {
	leftC := make(chan error, 1)
	p, err := ListenPull("tcp://127.0.0.1:0", Options{OnLeave: func(_ []byte, err error) { leftC <- err }})
	if err != nil {
		t.Fatal(err)
	}
	push := dial(t, p.Address(), Options{Type: Push})
	_ = push.Close(atOnce())
	if err := await(t, "leaving", leftC); !errors.Is(err, io.EOF) {
		t.Errorf("left: %v, want EOF", err)
	}
	staying := dial(t, p.Address(), Options{Type: Push})
	recvC := make(chan error, 1)
	go func() { _, err := p.Recv(); recvC <- err }()
	if err := p.Close(); err != nil {
		t.Errorf("Close = %v, want nil", err)
	}
	if err := await(t, "Recv's return", recvC); !errors.Is(err, ErrClosed) {
		t.Errorf("Recv = %v, want closed", err)
	}
	await(t, "end of the connection", staying.Done())
}
