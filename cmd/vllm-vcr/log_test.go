package main

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLog_NobodyReads has a fleet log everything into a pipe that takes nothing: it works and leaves as ever.
func TestLog_NobodyReads(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	reader, writer := fullPipe(t)
	f.program = launch(t, writer, []string{"RUST_LOG=trace"}, f.play(2)...)
	f.awaitReady(t)
	f.submit(t, 100_000)
	f.signal(t, syscall.SIGTERM)
	if code := f.awaitExit(t, 5*time.Second); code != 0 {
		t.Errorf("exit code = %d, want 0", code)
	}
	go f.read(reader)
}

// TestLog_NobodyReadsTheError leaves with the right code where even the error that it ends with cannot be told.
func TestLog_NobodyReadsTheError(t *testing.T) {
	t.Parallel()
	reader, writer := fullPipe(t)
	p := launch(t, writer, nil, "play", "--handshake-address", nowhere(t), "--startup-timeout", "1")
	if code := p.awaitExit(t, 10*time.Second); code != 1 {
		t.Errorf("exit code = %d, want 1", code)
	}
	go p.read(reader)
}

// TestLog_ReaderIsGone has whoever read the log end: that is no reason to end.
func TestLog_ReaderIsGone(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	f.program = launch(t, writer, []string{"RUST_LOG=trace"}, f.play(2)...)
	close(f.silent) // nobody can tell
	f.awaitReady(t)
	f.submit(t, 100_000)
	f.signal(t, syscall.SIGTERM)
	if code := f.awaitExit(t, 5*time.Second); code != 0 {
		t.Errorf("exit code = %d, want 0", code)
	}
}

// fullPipe returns a pipe whose writing end would block.
func fullPipe(t *testing.T) (reader, writer *os.File) {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	var err error
	for block := make([]byte, 4096); err == nil; {
		_, err = unix.Write(fds[1], block)
	}
	if !errors.Is(err, unix.EAGAIN) {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fds[1], false); err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fds[0]), "reader"), os.NewFile(uintptr(fds[1]), "writer")
}

// TestLog_Format has auto mean JSON where stderr is no terminal, and each word what it says.
func TestLog_Format(t *testing.T) {
	t.Parallel()
	tests := []struct {
		format string
		begins byte
	}{{"auto", '{'}, {"json", '{'}, {"text", '2'}} // of a year
	for _, tt := range tests {
		r := invoke(t, []string{"RUST_LOG=error"}, "play", "--handshake-address", nowhere(t), "--startup-timeout", "1", "--log-format", tt.format)
		r.want(t, 1, "error: not ready after 1 s")
		if r.stderr[0] != tt.begins {
			t.Errorf("%s: the log begins with %q, want %q", tt.format, r.stderr[0], tt.begins)
		}
	}
}

// TestLog_Off writes nothing but the error at the end.
func TestLog_Off(t *testing.T) {
	t.Parallel()
	r := invoke(t, []string{"RUST_LOG="}, "play", "--handshake-address", nowhere(t), "--startup-timeout", "1")
	if want := "error: not ready after 1 s: engine 0\n"; r.stderr != want {
		t.Errorf("stderr = %q, want %q", r.stderr, want)
	}
}
