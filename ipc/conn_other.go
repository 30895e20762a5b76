//go:build !linux

package ipc

import (
	"net"
	"os"
)

// FileConn returns a connection over a duplicate of socket. The caller closes both.
func FileConn(socket *os.File) (net.Conn, error) { return net.FileConn(socket) }
