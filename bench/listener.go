package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// listenerOf finds the process on this machine that listens on the port of address, the first of those that share the socket.
// It needs the right to see that process's descriptors.
func listenerOf(address string) (pid int, err error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("port of %q: %w", address, err)
	}
	sockets := listening(uint16(number))
	descriptors, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return 0, err
	}
	var owners []int
	for _, d := range descriptors {
		if to, err := os.Readlink(d); err != nil || !slices.Contains(sockets, to) { // closed meanwhile, or another's
			continue
		}
		owner, err := strconv.Atoi(strings.Split(d, "/")[2])
		if err != nil {
			return 0, fmt.Errorf("%s: %w", d, err)
		}
		owners = append(owners, owner)
	}
	if len(owners) == 0 {
		return 0, fmt.Errorf("no process that may be looked at listens on port %d", number)
	}
	return slices.Min(owners), nil
}

// listening names the sockets that listen on a port, as links of descriptors do: "socket:[inode]".
func listening(port uint16) []string {
	const local, state, inode = 1, 3, 9 // of the fields of a line
	const listens = "0A"
	suffix := fmt.Appendf(nil, ":%04X", port)
	var names []string
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, _ := os.ReadFile(file) // a machine without IPv6 has only one of the two
		for line := range bytes.Lines(table) {
			f := bytes.Fields(line)
			if len(f) > inode && string(f[state]) == listens && bytes.HasSuffix(f[local], suffix) {
				names = append(names, fmt.Sprintf("socket:[%s]", f[inode]))
			}
		}
	}
	return names
}
