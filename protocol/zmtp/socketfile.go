package zmtp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
)

const socketMode = 0o600

// bindSocketFile listens on a Unix socket at path, removing a stale one first.
func bindSocketFile(path string) (net.Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	lc := net.ListenConfig{Control: setSocketMode}
	ln, err := lc.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil { // for systems on which setSocketMode does nothing
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}

// setSocketMode gives the socket its mode before bind makes the file of it, so
// that there is no moment at which others can connect.
func setSocketMode(_, _ string, rc syscall.RawConn) error {
	return rc.Control(func(fd uintptr) {
		_ = syscall.Fchmod(int(fd), socketMode) // Linux; refused elsewhere
	})
}

// removeStale makes way for a new socket at path. It removes only a socket that
// belongs to this user and that nobody listens on.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket: want a free path", path)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is a socket of another user: want a free path", path)
	}
	nc, err := net.DialTimeout("unix", path, connectTimeout)
	if err == nil {
		_ = nc.Close() // it was only asked whether somebody answers
		return fmt.Errorf("%s: %w", path, syscall.EADDRINUSE)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%s: somebody may be listening there: %w", path, err)
	}
	return os.Remove(path)
}
