package zmtp

import (
	"net"
	"syscall"
	"testing"
)

// selfConnected returns a TCP socket that is connected to itself, as happens by chance to one that dials a port nobody
// listens at.
func selfConnected(t *testing.T) net.Conn {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().(*net.TCPAddr)
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	d := net.Dialer{LocalAddr: address, Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1) })
	}}
	nc, err := d.Dial("tcp", address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return nc
}

func TestDial_KnowsItself(t *testing.T) {
	if !isSelf(selfConnected(t)) {
		t.Error("a socket that is connected to itself passes for a peer")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	other, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if isSelf(other) {
		t.Error("a peer passes for the socket itself")
	}
}
