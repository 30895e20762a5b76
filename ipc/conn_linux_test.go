package ipc

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vllm-vcr/proctest"
)

// connPair is both ends of a socket pair. The test closes what it has not closed.
func connPair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	conns := make([]net.Conn, len(fds))
	for i, fd := range fds {
		socket := os.NewFile(uintptr(fd), "pair")
		if conns[i], err = FileConn(socket); err != nil {
			t.Fatal(err)
		}
		if err := socket.Close(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conns[i].Close() }) // the test may have closed it
	}
	return conns[0], conns[1]
}

// stuffed is far more than a socket takes while nobody reads.
var stuffed = bytes.Repeat([]byte("0123456789abcdef"), 1<<18)

// await runs do in the background and returns what it returned, once it has.
func await(do func() error) func(t *testing.T) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	return func(t *testing.T) error {
		t.Helper()
		select {
		case err := <-done:
			return err
		case <-time.After(30 * time.Second):
			t.Fatal("still waiting after 30 s")
			return nil
		}
	}
}

func write(c net.Conn, b []byte) func() error {
	return func() error { _, err := c.Write(b); return err }
}

func read(c net.Conn) func() error {
	return func() error { _, err := c.Read(make([]byte, 1)); return err }
}

// TestFileConn_BothWays sends more than fits each way, whoever begins.
func TestFileConn_BothWays(t *testing.T) {
	a, b := connPair(t)
	sent := []func(*testing.T) error{await(write(a, stuffed)), await(write(b, stuffed))}
	for _, c := range []net.Conn{a, b} {
		got := make([]byte, len(stuffed))
		if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, stuffed) {
			t.Errorf("read: %v, or something else than was sent", err)
		}
	}
	for _, s := range sent {
		if err := s(t); err != nil {
			t.Errorf("write: %v", err)
		}
	}
}

// TestFileConn_Frames reads frame by frame what came in one piece.
func TestFileConn_Frames(t *testing.T) {
	a, b := connPair(t)
	two := AppendFrame(AppendFrame(nil, Frame{KindCall, 1, []byte(`{"op":"ping"}`)}), Frame{KindCall, 2, stuffed[:9000]})
	sent := await(write(a, two))
	var buf []byte
	for _, want := range []Frame{{KindCall, 1, []byte(`{"op":"ping"}`)}, {KindCall, 2, stuffed[:9000]}} {
		var f Frame
		var err error
		if f, buf, err = ReadFrame(b, buf); err != nil || f.Call != want.Call || !bytes.Equal(f.Body, want.Body) {
			t.Errorf("frame %d = %d bytes under %d, %v, want %d bytes", want.Call, len(f.Body), f.Call, err, len(want.Body))
		}
	}
	if err := sent(t); err != nil {
		t.Error(err)
	}
}

// TestFileConn_Waits ends whatever waits, in each way that ends it.
func TestFileConn_Waits(t *testing.T) {
	past := time.Unix(1, 0)
	reads := func(c net.Conn) func() error { return read(c) }
	writes := func(c net.Conn) func() error { return write(c, stuffed) }
	tests := map[string]struct {
		wait func(net.Conn) func() error
		end  func(ours, theirs net.Conn) error
		want error
	}{
		"read, the other end leaves":       {reads, func(_, theirs net.Conn) error { return theirs.Close() }, io.EOF},
		"read, closed":                     {reads, func(ours, _ net.Conn) error { return ours.Close() }, net.ErrClosed},
		"read, deadline":                   {reads, func(ours, _ net.Conn) error { return ours.SetDeadline(past) }, os.ErrDeadlineExceeded},
		"read, deadline for reading":       {reads, func(ours, _ net.Conn) error { return ours.SetReadDeadline(past) }, os.ErrDeadlineExceeded},
		"write, the other end leaves":      {writes, func(_, theirs net.Conn) error { return theirs.Close() }, unix.EPIPE},
		"write, closed":                    {writes, func(ours, _ net.Conn) error { return ours.Close() }, net.ErrClosed},
		"write, deadline":                  {writes, func(ours, _ net.Conn) error { return ours.SetDeadline(past) }, os.ErrDeadlineExceeded},
		"write, deadline for writing":      {writes, func(ours, _ net.Conn) error { return ours.SetWriteDeadline(past) }, os.ErrDeadlineExceeded},
		"write, the other end reads after": {writes, drained, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ours, theirs := connPair(t)
			ended := await(tt.wait(ours))
			if err := tt.end(ours, theirs); err != nil {
				t.Fatal(err)
			}
			if err := ended(t); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}

func drained(_, theirs net.Conn) error {
	_, err := io.CopyN(io.Discard, theirs, int64(len(stuffed)))
	return err
}

// TestFileConn_Closed refuses everything from then on, and a second Close.
func TestFileConn_Closed(t *testing.T) {
	c, _ := connPair(t)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{"Read": read(c), "Write": write(c, []byte("x"))} {
		if err := do(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s after Close: %v, want %v", name, err, net.ErrClosed)
		}
	}
	if err := c.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second Close: %v, want %v", err, net.ErrClosed)
	}
}

// TestFileConn_WakesOnce is what it exists for: that the other end has read is no event.
func TestFileConn_WakesOnce(t *testing.T) {
	ours, theirs := connPair(t)
	if _, err := ours.Write([]byte("question")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(theirs, make([]byte, len("question"))); err != nil {
		t.Fatal(err)
	}
	if n := events(t, ours.(*conn)); n != 0 {
		t.Errorf("%d events after the other end has read, want none", n)
	}
	if _, err := theirs.Write([]byte("answer")); err != nil {
		t.Fatal(err)
	}
	if n := events(t, ours.(*conn)); n != 1 {
		t.Errorf("%d events after the other end has written, want 1", n)
	}
}

// TestFileConn_WakesOnceAfterAWait is the same for a connection on which a Write had to wait for the other end.
func TestFileConn_WakesOnceAfterAWait(t *testing.T) {
	ours, theirs := connPair(t)
	sent := await(write(ours, stuffed))
	if _, err := io.ReadFull(theirs, make([]byte, len(stuffed))); err != nil {
		t.Fatal(err)
	}
	if err := sent(t); err != nil {
		t.Fatal(err)
	}
	if n := events(t, ours.(*conn)); n != 0 {
		t.Errorf("%d events after the other end has read, want none", n)
	}
}

// events counts what the netpoller would be told at this moment.
func events(t *testing.T, c *conn) int {
	t.Helper()
	total := 0
	for _, w := range []*watch{c.readable, c.writable} {
		err := w.raw.Control(func(epoll uintptr) {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(epoll), Events: unix.POLLIN}}, 0)
			if err != nil {
				t.Error(err)
			}
			total += n
		})
		if err != nil {
			t.Error(err)
		}
	}
	return total
}

// TestFileConn_NoSocket is refused, and leaves nothing open.
func TestFileConn_NoSocket(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if c, err := FileConn(file); err == nil {
		t.Errorf("FileConn of %s: %v, want an error", os.DevNull, c)
	}
}

// TestFileConn_NothingLeaks opens and closes.
func TestFileConn_NothingLeaks(t *testing.T) {
	once := func() {
		a, b := connPair(t)
		if err := errors.Join(a.Close(), b.Close()); err != nil {
			t.Fatal(err)
		}
	}
	once() // the runtime opens what it keeps
	before := len(proctest.Descriptors(t, os.Getpid()))
	for range 10 {
		once()
	}
	if after := len(proctest.Descriptors(t, os.Getpid())); after != before {
		t.Errorf("%d descriptors are open, want the %d from before", after, before)
	}
}
