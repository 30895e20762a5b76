package zmtp

import (
	"bytes"
	"net"
	"syscall"
)

// maxDirect is the largest message, in bytes, that its sender hands to the kernel
// itself: more costs so much that the writer's wake-up doesn't matter.
const maxDirect = chunkSize

// direct hands whole messages to the kernel without waiting. One goroutine at a
// time may use it: the one that has claimed the queue.
type direct struct {
	raw  syscall.RawConn
	try  func(fd uintptr) bool // made once: a closure for each message would be garbage
	buf  []byte                // the message
	sent int                   // bytes of it that the kernel took
}

// newDirect returns nil for a connection that is no descriptor.
func newDirect(nc net.Conn) *direct {
	descriptor, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := descriptor.SyscallConn()
	if err != nil {
		return nil
	}
	d := &direct{raw: raw}
	d.try = func(fd uintptr) bool {
		d.sent = max(0, sendNoWait(fd, d.buf))
		return true
	}
	return d
}

// fits says whether a message is one for send.
func (d *direct) fits(frames [][]byte) bool {
	return len(frames) > 0 && int64(len(frames)*maxHeaderSize)+size(frames) <= maxDirect
}

// send returns how many bytes the kernel took, and a copy of the others. Whatever
// is wrong with the connection, the writer will find out with those.
func (d *direct) send(frames [][]byte) (n int, rest []byte) {
	d.buf, d.sent = appendMessage(d.buf[:0], frames), 0
	_ = d.raw.Write(d.try)
	if d.sent < len(d.buf) {
		rest = bytes.Clone(d.buf[d.sent:])
	}
	return d.sent, rest
}
