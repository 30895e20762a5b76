package zmtp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for an event before it fails.
const patience = 20 * time.Second

// within returns a context that ends when a test has waited long enough.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// atOnce is a context that has ended: Close with it does not flush.
func atOnce() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func await[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: not seen in %v", what, patience)
		panic("unreachable")
	}
}

func listen(t *testing.T, address string, o Options) *Listener {
	t.Helper()
	l, err := Listen(address, o)
	if err != nil {
		t.Fatalf("Listen: %v", err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func dial(t *testing.T, address string, o Options) *Conn {
	t.Helper()
	c, err := Dial(within(t), address, o)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	t.Cleanup(func() { _ = c.Close(atOnce()) })
	return c
}

func accept(t *testing.T, l *Listener) *Conn {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatalf("Accept: %v", err)
	}
	t.Cleanup(func() { _ = c.Close(atOnce()) })
	return c
}

// pair connects two Conns of ours over loopback.
func pair(t *testing.T, dialing, accepting Options) (dialled, accepted *Conn) {
	t.Helper()
	l := listen(t, "tcp://127.0.0.1:0", accepting)
	dialled = dial(t, l.Address(), dialing)
	return dialled, accept(t, l)
}

// sockets connects two plain TCP connections over loopback.
func sockets(t *testing.T) (a, b net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if a, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(); _ = b.Close() })
	return a, b
}

// hostPort strips the scheme of a tcp address.
func hostPort(address string) string { return strings.TrimPrefix(address, "tcp://") }

// scripted connects a Conn of ours to a plain socket on which the test plays
// the peer, of the given type, after the handshake.
func scripted(t *testing.T, o Options, as SocketType) (*Conn, net.Conn) {
	t.Helper()
	return scriptedGreeting(t, o, as, appendGreeting(nil))
}

func scriptedGreeting(t *testing.T, o Options, as SocketType, greeting []byte) (*Conn, net.Conn) {
	t.Helper()
	l := listen(t, "tcp://127.0.0.1:0", o)
	nc, err := net.Dial("tcp", hostPort(l.Address()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	write(t, nc, appendReady(greeting, as, nil))
	c := accept(t, l)
	read(t, nc, len(appendReady(appendGreeting(nil), o.Type, o.Identity)))
	return c, nc
}

func write(t *testing.T, nc net.Conn, b []byte) {
	t.Helper()
	if _, err := nc.Write(b); err != nil {
		t.Fatalf("peer's write: %v", err)
	}
}

// read returns exactly n bytes.
func read(t *testing.T, nc net.Conn, n int) []byte {
	t.Helper()
	_ = nc.SetReadDeadline(time.Now().Add(patience))
	b := make([]byte, n)
	for have := 0; have < n; {
		m, err := nc.Read(b[have:])
		if err != nil {
			t.Fatalf("peer's read: %d of %d bytes: %v", have, n, err)
		}
		have += m
	}
	return b
}

// encode makes the frames of one message.
func encode(frames ...string) []byte {
	var b []byte
	for i, f := range frames {
		flags := byte(flagMore)
		if i == len(frames)-1 {
			flags = 0
		}
		b = appendHeader(b, flags, len(f))
		b = append(b, f...)
	}
	return b
}

func send(t *testing.T, c *Conn, frames ...string) {
	t.Helper()
	b := make([][]byte, len(frames))
	for i, f := range frames {
		b[i] = []byte(f)
	}
	if err := c.Send(b...); err != nil {
		t.Fatalf("Send: %v", err)
	}
}

// receive returns the next message of c as text.
func receive(t *testing.T, c *Conn) []string {
	t.Helper()
	frames, err := c.Recv()
	if err != nil {
		t.Fatalf("Recv: %v", err)
	}
	return texts(frames)
}

func texts(frames [][]byte) []string {
	s := make([]string, len(frames))
	for i, f := range frames {
		s[i] = string(f)
	}
	return s
}

// wantError checks that err wraps target and says what it should.
func wantError(t *testing.T, err, target error, text string) {
	t.Helper()
	if !errors.Is(err, target) || !strings.Contains(fmt.Sprint(err), text) {
		t.Errorf("error = %v, want one that wraps %q and says %q", err, target, text)
	}
}
