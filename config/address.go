package config

import (
	"net"
	"strconv"
	"strings"
)

// maxSocketPath is the longest path of a Unix socket, in bytes: the kernel has 108 for it and a final NUL.
const maxSocketPath = 107

const (
	allowedHandshake = "tcp://HOST:PORT with a port from 1 to 65535, or ipc:///PATH of at most 107 bytes"
	allowedControl   = "HOST:PORT with a port from 0 to 65535, or unix:/PATH of at most 107 bytes"
)

// isHandshake accepts addresses to connect to, so neither * nor port 0.
func isHandshake(s string) bool {
	if path, ok := strings.CutPrefix(s, "ipc://"); ok {
		return path != "" && path != "*" && path[0] != '@' && len(path) <= maxSocketPath && !strings.Contains(path, "\x00")
	}
	hostPort, ok := strings.CutPrefix(s, "tcp://")
	host, port, err := net.SplitHostPort(hostPort)
	return ok && err == nil && host != "" && host != "*" && isPort(port) && port != "0"
}

// isControl accepts addresses to listen at, where port 0 stands for any free one, and nothing at all.
func isControl(s string) bool {
	if s == "" {
		return true
	}
	if path, ok := SocketPath(s); ok {
		return path[0] == '/' && len(path) <= maxSocketPath && !strings.Contains(path, "\x00")
	}
	_, port, err := net.SplitHostPort(s)
	return err == nil && isPort(port)
}

// SocketPath is the path in a control address unix:PATH that names a Unix socket. What follows unix: in HOST:PORT is a port.
func SocketPath(address string) (path string, ok bool) {
	path, ok = strings.CutPrefix(address, "unix:")
	return path, ok && path != "" && !isPort(path)
}

// isPort accepts a port in plain decimal digits.
func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && strconv.FormatUint(n, 10) == s
}
