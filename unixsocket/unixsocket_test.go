package unixsocket

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func listen(t *testing.T, path string) net.Listener {
	t.Helper()
	ln, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() }) // the test may have closed it
	return ln
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	wantReached(t, listen(t, path), path)
}

// wantReached connects to ln at its path.
func wantReached(t *testing.T, ln net.Listener, path string) {
	t.Helper()
	theirs, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	ours, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = ours.Close()
}

// TestUnixSocket_Mode has a umask that would let everybody in.
func TestUnixSocket_Mode(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path := filepath.Join(t.TempDir(), "s")
	ln := listen(t, path)
	file, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := os.ModeSocket | 0o600; file.Mode() != want {
		t.Errorf("mode = %v, want %v", file.Mode(), want)
	}
	if err := ln.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("after Close: %v, want no file", err)
	}
}

// stale leaves what a killed process does.
func stale(t *testing.T, path string) {
	t.Helper()
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestUnixSocket_Stale(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	stale(t, path)
	wantReached(t, listen(t, path), path)
}

func TestUnixSocket_Refused(t *testing.T) {
	tests := map[string]struct {
		put  func(t *testing.T, path string)
		says string
	}{
		"a file":         {func(t *testing.T, path string) { mustDo(t, os.WriteFile(path, []byte("precious"), 0o600)) }, "is no socket"},
		"a folder":       {func(t *testing.T, path string) { mustDo(t, os.Mkdir(path, 0o700)) }, "is no socket"},
		"a pipe":         {func(t *testing.T, path string) { mustDo(t, unix.Mkfifo(path, 0o600)) }, "is no socket"},
		"a link to file": {func(t *testing.T, path string) { mustDo(t, os.Symlink("/etc/passwd", path)) }, "is no socket"},
		"a link to none": {func(t *testing.T, path string) { mustDo(t, os.Symlink("/nowhere", path)) }, "is no socket"},
		"a link to a stale socket": {func(t *testing.T, path string) {
			stale(t, path+"2")
			mustDo(t, os.Symlink(path+"2", path))
		}, "is no socket"},
		"a live socket": {func(t *testing.T, path string) { listen(t, path) }, "is in use: another process listens at it"},
		"another kind of socket": {func(t *testing.T, path string) {
			conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path})
			mustDo(t, err)
			t.Cleanup(func() { _ = conn.Close() })
		}, "may be in use"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			tt.put(t, path)
			before, err := os.Lstat(path)
			mustDo(t, err)
			if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want %q with the path in it", err, tt.says)
			}
			if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
				t.Errorf("what was there has been replaced: %v", err)
			}
		})
	}
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestUnixSocket_OtherUser finds the stale socket of somebody else.
func TestUnixSocket_OtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can give a file away")
		return
	}
	path := filepath.Join(t.TempDir(), "s")
	stale(t, path)
	mustDo(t, os.Chown(path, 12345, 12345))
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "socket of another user") {
		t.Errorf("error %v, want that it is another user's", err)
	}
}

func TestUnixSocket_NoFolder(t *testing.T) {
	if _, err := Listen(filepath.Join(t.TempDir(), "none", "s")); !os.IsNotExist(err) {
		t.Errorf("error %v, want that there is no folder", err)
	}
}

// TestUnixSocket_AtOnce starts many over one stale socket: one of them has it, and keeps it.
func TestUnixSocket_AtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	stale(t, path)
	var mu sync.Mutex
	var listeners []net.Listener
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			ln, err := Listen(path)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				listeners = append(listeners, ln)
			} else if !strings.Contains(err.Error(), "is in use") {
				t.Errorf("error %v, want that it is in use", err)
			}
		})
	}
	all.Wait()
	if len(listeners) != 1 {
		t.Fatalf("%d listeners, want 1", len(listeners))
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	mustDo(t, err)
	mustDo(t, conn.Close())
	mustDo(t, listeners[0].Close())
}

// TestUnixSocket_Replaced has somebody put another file in the socket's place: it is left alone.
func TestUnixSocket_Replaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ln := listen(t, path)
	mustDo(t, os.Rename(path, path+"2"))
	mustDo(t, os.WriteFile(path, nil, 0o600))
	mustDo(t, ln.Close())
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}
