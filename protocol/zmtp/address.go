package zmtp

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// maxPath is the longest path a Unix socket can have on Linux; the kernel's
// field has 108 bytes with the final NUL.
const maxPath = 107

// endpoint is a parsed address, in the words of package net.
type endpoint struct {
	network string // "tcp" or "unix"
	host    string // tcp: "" is every interface
	port    string // tcp
	path    string // unix
}

// parseAddress takes tcp://host:port and ipc://path apart. A host of * or
// nothing means every interface.
func parseAddress(address string) (endpoint, error) {
	scheme, rest, found := strings.Cut(address, "://")
	switch {
	case found && scheme == "tcp":
		return parseTCP(address, rest)
	case found && scheme == "ipc":
		return parseIPC(address, rest)
	}
	return endpoint{}, fmt.Errorf("address %q: want tcp://host:port or ipc:///path", address)
}

func parseTCP(address, rest string) (endpoint, error) {
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		return endpoint{}, fmt.Errorf("address %q: want tcp://host:port: %w", address, err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return endpoint{}, fmt.Errorf("address %q: port %q: want 0 to 65535", address, port)
	}
	if host == "*" {
		host = ""
	}
	return endpoint{network: "tcp", host: host, port: port}, nil
}

func parseIPC(address, path string) (endpoint, error) {
	switch {
	case path == "" || path == "*":
		return endpoint{}, fmt.Errorf("address %q: want ipc:///path", address)
	case path[0] == '@' || strings.Contains(path, "\x00"):
		return endpoint{}, fmt.Errorf("address %q: want the path of a file, not an abstract name", address)
	case len(path) > maxPath:
		return endpoint{}, fmt.Errorf("address %q: path of %d bytes, want at most %d", address, len(path), maxPath)
	}
	return endpoint{network: "unix", path: path}, nil
}

// dialable refuses what only a listener can use.
func (e endpoint) dialable(address string) error {
	if e.network == "tcp" && (e.host == "" || e.port == "0") {
		return fmt.Errorf("address %q: want a host and a port to connect to", address)
	}
	return nil
}

// netAddress is what net.Dial and net.Listen take.
func (e endpoint) netAddress() string {
	if e.network == "unix" {
		return e.path
	}
	return net.JoinHostPort(e.host, e.port)
}

// boundAddress is the address under which a peer on this host reaches a
// listener that was asked for e.
func boundAddress(e endpoint, ln net.Listener) string {
	bound, ok := ln.Addr().(*net.TCPAddr)
	if !ok {
		return "ipc://" + e.path
	}
	host := bound.IP.String()
	if bound.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(bound.Port))
}
