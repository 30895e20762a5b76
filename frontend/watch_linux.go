package frontend

import (
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vllm-vcr/httpserve"
)

// watcher tells when the client at the other end of a connection goes, while nobody reads from it. It neither polls nor takes
// a byte: it parks in the runtime's poller, and looks only when the kernel has news. Under TLS it looks below it.
type watcher struct {
	conn  net.Conn
	doneC chan struct{} // closed when the watching has ended; nil = nothing is watched
	once  sync.Once
}

// watch calls gone, once and from another goroutine, when the client closes, resets or half-closes the connection. Until stop
// returns nobody may read from conn or set its read deadline.
func watch(conn net.Conn, gone func()) *watcher {
	w := &watcher{conn: httpserve.Raw(conn)}
	source, ok := w.conn.(syscall.Conn)
	if !ok {
		return w
	}
	raw, err := source.SyscallConn()
	if err != nil {
		return w
	}
	_ = w.conn.SetReadDeadline(time.Time{}) // that of the request's arrival would end the watching; one that is closed ends it at once
	w.doneC = make(chan struct{})
	go w.run(raw, gone)
	return w
}

func (w *watcher) run(raw syscall.RawConn, gone func()) {
	defer close(w.doneC)
	left := false
	err := raw.Read(func(fd uintptr) bool {
		left = hasLeft(int(fd))
		return left
	})
	if err == nil && left {
		gone()
	}
}

// stop ends the watching, and gives the connection back to its reader. It may be called more than once.
func (w *watcher) stop() {
	w.once.Do(func() {
		if w.doneC == nil {
			return
		}
		_ = w.conn.SetReadDeadline(time.Unix(1, 0)) // a connection that is closed has ended the watching itself
		<-w.doneC
		_ = w.conn.SetReadDeadline(time.Time{})
	})
}

// hasLeft looks without waiting and without taking anything.
func hasLeft(fd int) bool {
	var b [1]byte
	n, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return false
	case err != nil || n == 0:
		return true
	}
	// The client has sent its next request already, or TLS's own end. Behind it may be the end.
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	return err == nil && info.State != tcpEstablished
}

// tcpEstablished is the kernel's number of the state in which both directions are open.
const tcpEstablished = 1
