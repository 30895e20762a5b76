//go:build interop

// The tests of this file talk to libzmq, through pyzmq. They need PYTHON to name
// an interpreter that can import zmq:
//
//	PYTHON=/path/to/python go test -tags interop ./protocol/zmtp
package zmtp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// python is a peer in another process.
type python struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lineC chan string // closed at the end of its output
}

// startPython starts testdata/peer.py with the given arguments. The peer ends
// with the test.
func startPython(t *testing.T, arguments ...string) *python {
	t.Helper()
	interpreter := os.Getenv("PYTHON")
	if interpreter == "" {
		t.Fatal("PYTHON is not set: want the path of an interpreter that has pyzmq")
	}
	if out, err := exec.Command(interpreter, "-c", "import zmq").CombinedOutput(); err != nil {
		t.Fatalf("PYTHON=%s can't import zmq (pip install pyzmq): %v\n%s", interpreter, err, out)
	}
	p := &python{t: t, lineC: make(chan string, 100)}
	p.cmd = exec.Command(interpreter, append([]string{"testdata/peer.py"}, arguments...)...)
	p.cmd.Stderr = os.Stderr
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lineC)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			p.lineC <- lines.Text()
		}
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends the peer as kill -9 does, and waits. Only the first call acts.
func (p *python) kill() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended by itself
	for range p.lineC {
	}
	_ = p.cmd.Wait() // killed, mostly
}

// line is the next line the peer prints.
func (p *python) line() string {
	p.t.Helper()
	return await(p.t, "line of the peer", p.lineC)
}

func (p *python) wantLine(want string) {
	p.t.Helper()
	if got := p.line(); got != want {
		p.t.Errorf("peer says %q, want %q", got, want)
	}
}

// address is what the peer is bound to.
func (p *python) address() string {
	p.t.Helper()
	address, ok := strings.CutPrefix(p.line(), "at ")
	if !ok {
		p.t.Fatal("the peer is not bound")
	}
	return address
}

// everyTransport runs a test over tcp and over ipc.
func everyTransport(t *testing.T, test func(t *testing.T, address string)) {
	t.Run("tcp", func(t *testing.T) { test(t, "tcp://127.0.0.1:0") })
	t.Run("ipc", func(t *testing.T) { test(t, "ipc://"+t.TempDir()+"/socket") })
}

func TestInterop_DealerToRouter(t *testing.T) {
	everyTransport(t, func(t *testing.T, address string) {
		peer := startPython(t, "echo", address)
		c := dial(t, peer.address(), Options{Type: Dealer, Identity: []byte{0, 0}})
		big := strings.Repeat("0123456789", 2_000_000) // 20 MB
		for _, frames := range [][]string{
			{"hello"}, {"", ""}, {"\x00", strings.Repeat("x", 255), strings.Repeat("y", 256)}, {"head", big, "tail"}, {big, big},
		} {
			send(t, c, frames...)
			want := append([]string{"0000"}, frames...)
			if got := receive(t, c); !cmp.Equal(got, want) {
				t.Errorf("echo of %d frames differs: %d frames, first %.20q", len(want), len(got), got[0])
			}
		}
	})
}

func TestInterop_PushToPull(t *testing.T) {
	everyTransport(t, func(t *testing.T, address string) {
		const messages = 100_000
		peer := startPython(t, "count", address, fmt.Sprint(messages))
		c := dial(t, peer.address(), Options{Type: Push})
		body := make([]byte, 100)
		for i := range messages {
			binary.BigEndian.PutUint32(body, uint32(i))
			if err := c.Send(body); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(within(t)); err != nil { // at once: the flush is part of the test
			t.Errorf("Close = %v, want nil", err)
		}
		peer.wantLine(fmt.Sprintf("counted %d", messages))
	})
}

func TestInterop_SubscribeToXPub(t *testing.T) {
	for _, socketType := range []SocketType{Sub, XSub} {
		t.Run(string(socketType), func(t *testing.T) {
			peer := startPython(t, "publish", "tcp://127.0.0.1:0")
			c := dial(t, peer.address(), Options{Type: socketType})
			if err := c.Subscribe(nil); err != nil {
				t.Fatal(err)
			}
			if got := receive(t, c); !cmp.Equal(got, []string{"READY", ""}) {
				t.Errorf("message = %q, want READY", got)
			}
			receive(t, c)
		})
	}
	t.Run("by message", func(t *testing.T) { // as vLLM's engine core does on its XSUB
		peer := startPython(t, "publish", "tcp://127.0.0.1:0")
		c := dial(t, peer.address(), Options{Type: XSub})
		send(t, c, "\x01")
		if got := receive(t, c); !cmp.Equal(got, []string{"READY", ""}) {
			t.Errorf("message = %q, want READY", got)
		}
	})
	t.Run("prefix", func(t *testing.T) {
		peer := startPython(t, "publish", "tcp://127.0.0.1:0")
		c := dial(t, peer.address(), Options{Type: Sub})
		if err := c.Subscribe([]byte("kv")); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, c); !cmp.Equal(got, []string{"kv-topic", "\x01kv"}) {
			t.Errorf("message = %q, want only the topic subscribed to", got)
		}
	})
}

// libzmq pings and would drop us within 150 ms if we didn't answer.
func TestInterop_Heartbeats(t *testing.T) {
	bound := map[string]SocketType{"ROUTER": Dealer, "PULL": Push, "XPUB": Sub}
	for kind, ours := range bound {
		t.Run("we dial "+kind, func(t *testing.T) {
			peer := startPython(t, "heartbeat", kind, "tcp://127.0.0.1:0", "1")
			c := dial(t, peer.address(), Options{Type: ours})
			if !ours.sendOnly() {
				go readAway(c)
			}
			peer.wantLine("connections 1 lost 0")
		})
	}
	dialling := map[string]SocketType{"DEALER": Router, "PUSH": Pull, "SUB": Pub}
	for kind, ours := range dialling {
		t.Run(kind+" dials us", func(t *testing.T) {
			l := listen(t, "tcp://127.0.0.1:0", Options{Type: ours})
			peer := startPython(t, "heartbeat", kind, l.Address(), "1")
			c := accept(t, l)
			if !ours.sendOnly() {
				go readAway(c)
			}
			peer.wantLine("connections 1 lost 0")
		})
	}
}

// Send doesn't wait for a reader that has stopped, and the marks tell when it
// has caught up.
func TestInterop_SlowReader(t *testing.T) {
	const messages, size = 64, 1 << 20
	peer := startPython(t, "slow", "tcp://127.0.0.1:0", fmt.Sprint(messages))
	lowC := make(chan struct{}, 1)
	c := dial(t, peer.address(), Options{
		Type: Push, HighWater: 8 << 20, LowWater: 4 << 20, OnLowWater: func() { lowC <- struct{}{} },
	})
	began := time.Now()
	for range messages {
		if err := c.Send(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("64 MiB for a reader that stands still took %v to send", took)
	}
	if n := c.Queued(); n < 32<<20 {
		t.Errorf("queued = %d, want most of 64 MiB", n)
	}
	if _, err := io.WriteString(peer.stdin, "go\n"); err != nil {
		t.Fatal(err)
	}
	await(t, "low mark", lowC)
	peer.wantLine(fmt.Sprintf("read %d", messages*size))
}

func TestInterop_PeerKilledAndRestarted(t *testing.T) {
	everyTransport(t, func(t *testing.T, address string) {
		first := startPython(t, "count", address, "1000")
		address = first.address()
		c := dial(t, address, Options{Type: Push})
		send(t, c, "\x00\x00\x00\x00")
		first.kill()
		await(t, "end of the connection", c.Done())
		if err := c.Send([]byte("x")); err == nil {
			t.Error("Send to a dead peer returned no error")
		}
		againC := make(chan *Conn, 1)
		go func() { // begins while nobody is there
			c, err := Dial(within(t), address, Options{Type: Push})
			if err != nil {
				t.Error(err)
			}
			againC <- c
		}()
		second := startPython(t, "count", address, "1")
		second.address()
		again := await(t, "new connection", againC)
		defer again.Close(atOnce())
		send(t, again, "\x00\x00\x00\x00")
		second.wantLine("counted 1")
	})
}

func TestInterop_RouterSocket(t *testing.T) {
	everyTransport(t, func(t *testing.T, address string) {
		r, err := ListenRouter(address, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close(atOnce())
		peer := startPython(t, "dealers", r.Address(), "3")
		for range 3 {
			identity, frames, err := r.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if want := []string{"hello", "", string(identity)}; !cmp.Equal(texts(frames), want) {
				t.Errorf("message of %x = %q, want %q", identity, texts(frames), want)
			}
			if err := r.Send(identity, fmt.Appendf(nil, "%x", identity)); err != nil {
				t.Error(err)
			}
		}
		peer.wantLine("answers 0000 0100 0200")
	})
}

func TestInterop_RouterSocketTakeover(t *testing.T) {
	r, err := ListenRouter("tcp://127.0.0.1:0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(atOnce())
	peer := startPython(t, "handover", r.Address())
	for _, want := range []string{"old", "new"} {
		identity, frames, err := r.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if got := texts(frames); !bytes.Equal(identity, []byte{0, 0}) || !cmp.Equal(got, []string{want}) {
			t.Errorf("message = %x %q, want 0000 %q", identity, got, want)
		}
		if err := r.Send(identity, []byte("to "+want)); err != nil {
			t.Error(err)
		}
	}
	peer.wantLine("answer to new")
}

func TestInterop_Puller(t *testing.T) {
	for _, test := range []struct{ messages, size int }{{100_000, 100}, {20, 20 << 20}} {
		t.Run(fmt.Sprintf("%d of %d", test.messages, test.size), func(t *testing.T) {
			p, err := ListenPull("tcp://127.0.0.1:0", Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			startPython(t, "push", p.Address(), fmt.Sprint(test.messages), fmt.Sprint(test.size))
			for i := range test.messages {
				frames, err := p.Recv()
				if err != nil {
					t.Fatal(err)
				}
				if got := binary.BigEndian.Uint32(frames[0]); got != uint32(i) || len(frames[0]) != test.size {
					t.Fatalf("message %d: number %d, %d bytes", i, got, len(frames[0]))
				}
			}
		})
	}
}

func TestInterop_PublishToSub(t *testing.T) {
	for _, socketType := range []SocketType{Pub, XPub} {
		t.Run(string(socketType), func(t *testing.T) {
			l := listen(t, "tcp://127.0.0.1:0", Options{Type: socketType})
			peer := startPython(t, "subscribe", l.Address(), "a", "b")
			c := accept(t, l)
			if socketType == XPub {
				for _, want := range []string{"\x01a", "\x01b"} {
					if got := receive(t, c); !cmp.Equal(got, []string{want}) {
						t.Errorf("subscription = %q, want %q", got, want)
					}
				}
			}
			publishUntil(t, c, peer, "got 1 2")
		})
	}
}

// publishUntil publishes again and again, since a subscription takes effect at
// its own time, until the peer has said what it got.
func publishUntil(t *testing.T, c *Conn, peer *python, want string) {
	t.Helper()
	ctx := within(t)
	for pause := time.NewTicker(time.Millisecond); ; {
		send(t, c, "other", "0")
		send(t, c, "a", "1")
		send(t, c, "b", "2")
		select {
		case got := <-peer.lineC:
			if got != want {
				t.Errorf("peer says %q, want %q", got, want)
			}
			pause.Stop()
			return
		case <-ctx.Done():
			t.Fatal("the peer says nothing")
		case <-pause.C:
		}
	}
}

// A libzmq peer of a type we can't talk to is refused by name, at once.
func TestInterop_Incompatible(t *testing.T) {
	peer := startPython(t, "count", "tcp://127.0.0.1:0", "1")
	_, err := Dial(context.Background(), peer.address(), Options{Type: Dealer})
	wantError(t, err, ErrProtocol, `peer is "PULL"`)
}
