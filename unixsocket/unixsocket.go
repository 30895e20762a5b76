// Package unixsocket listens at sockets of the file system to which only processes of this user can connect. It knows nothing of what
// is said there.
package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Listen listens at a Unix socket that only processes of this user can connect to: its file has mode 0600 from its first
// moment, which is all that is needed to keep other users out. Closing the listener removes the file. A file that is there
// already is replaced if it is a socket of this user at which nobody listens, as a process leaves it that was killed; any
// other is an error, [syscall.EADDRINUSE] where somebody listens at it. The path has at most 107 bytes.
func Listen(path string) (net.Listener, error) {
	unlock, err := lockFolder(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer unlock()
	ln, err := bindPrivate(path)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return ln, err
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	return bindPrivate(path)
}

// lockPatience is how long another process may take to start at a socket of the same folder.
const lockPatience = 2 * time.Second

// lockFolder keeps processes that start at once from removing each other's sockets. The lock is on the folder itself, so that no
// file of it is left.
func lockFolder(path string) (unlock func(), err error) {
	folder, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(lockPatience); ; <-again.C {
		err = unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = folder.Close() }, nil // which unlocks it
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("folder %s is locked by another process: %w", path, err), folder.Close())
		}
	}
}

// bindPrivate sets the mode of the socket before it has a file: the file gets what the umask leaves of it.
func bindPrivate(path string) (net.Listener, error) {
	private := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = unix.Fchmod(int(fd), 0o600) })
		return errors.Join(err, failed)
	}}
	ln, err := private.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	own := ln.(*net.UnixListener)
	own.SetUnlinkOnClose(false)
	file, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(err, own.Close())
	}
	return &listener{UnixListener: own, path: path, file: file}, nil
}

// removeStale removes the socket of a dead process of this user, and nothing else.
func removeStale(path string) error {
	file, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if file.Mode()&os.ModeSocket == 0 {
		return fmt.Errorf("%s is there already and is no socket", path)
	}
	if stat, ok := file.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is a socket of another user", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		_ = conn.Close() // it was opened to see that somebody listens
		return fmt.Errorf("%s is in use: another process listens at it: %w", path, syscall.EADDRINUSE)
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s may be in use: %w", path, err)
	}
	return os.Remove(path)
}

// listener removes its socket's file, unless somebody has put another one in its place.
type listener struct {
	*net.UnixListener
	path   string
	file   os.FileInfo
	remove sync.Once
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.remove.Do(func() {
		if there, err := os.Lstat(l.path); err == nil && os.SameFile(there, l.file) {
			_ = os.Remove(l.path) // what is left nobody listens at, so the next start removes it
		}
	})
	return l.UnixListener.Close()
}
