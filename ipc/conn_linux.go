package ipc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// conn is a socket of which Go's netpoller knows nothing. On a socket of its own every message between two processes that are
// idle in between wakes one of them once more than it must, as soon as the other has read, since the netpoller asks for
// writability along with readability; and each system call wakes Go's monitor thread, for several turns of 20 µs. Here the
// netpoller watches two epoll instances, one that hears of readability alone, and one that is told to listen for writability
// while a Write waits; and the calls, which cannot wait, are made without a word to Go's scheduler.
type conn struct {
	socket             *os.File
	fd                 uintptr
	in                 *bufio.Reader // over receive: a frame takes one call
	readable, writable *watch
	closing            sync.Once
}

// FileConn returns a connection over a duplicate of socket, a connected stream socket. The caller closes both. One goroutine
// may read and one may write at a time; deadlines and Close end their waiting, with [os.ErrDeadlineExceeded] and
// [net.ErrClosed].
func FileConn(socket *os.File) (net.Conn, error) {
	fd, err := unix.FcntlInt(socket.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicate socket: %w", err)
	}
	c := &conn{socket: os.NewFile(uintptr(fd), socket.Name()), fd: uintptr(fd)}
	c.in = bufio.NewReader(readerFunc(c.receive))
	if c.readable, err = watchFor(fd, unix.EPOLLIN); err != nil {
		return nil, errors.Join(err, c.socket.Close())
	}
	if c.writable, err = watchFor(fd, 0); err != nil {
		return nil, errors.Join(err, c.readable.file.Close(), c.socket.Close())
	}
	return c, nil
}

// readerFunc is an io.Reader.
type readerFunc func(b []byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// watch is an epoll instance that the netpoller watches.
type watch struct {
	file *os.File
	raw  syscall.RawConn
}

// watchFor watches events of fd.
func watchFor(fd int, events uint32) (*watch, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	_ = unix.SetNonblock(epoll, true) // or os would not let the netpoller watch it; it fails on bad descriptors only
	w := &watch{file: os.NewFile(uintptr(epoll), "epoll")}
	if w.raw, err = w.file.SyscallConn(); err == nil {
		err = w.file.SetDeadline(time.Time{}) // fails where the netpoller does not take it
	}
	if err == nil {
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("epoll: %w", err), w.file.Close())
	}
	return w, nil
}

func (c *conn) Read(b []byte) (int, error) { return c.in.Read(b) }

// receive waits for the first byte.
func (c *conn) receive(b []byte) (n int, err error) {
	var errno syscall.Errno
	err = c.readable.raw.Read(func(uintptr) bool {
		n, errno = transfer(syscall.SYS_RECVFROM, c.fd, b)
		return errno != unix.EAGAIN
	})
	if err = outcome("recvfrom", err, errno); err == nil && n == 0 && len(b) > 0 {
		err = io.EOF
	}
	return n, err
}

// Write hands over all of b.
func (c *conn) Write(b []byte) (sent int, err error) {
	for sent < len(b) && err == nil {
		var n int
		n, err = c.send(b[sent:])
		sent += n
	}
	return sent, err
}

// send waits until the socket takes something of b. As long as it waits, it has writable listen.
func (c *conn) send(b []byte) (n int, err error) {
	var errno syscall.Errno
	listens := false
	err = c.writable.raw.Read(func(epoll uintptr) bool {
		if n, errno = transfer(syscall.SYS_SENDTO, c.fd, b); errno != unix.EAGAIN {
			if listens {
				_ = c.listen(epoll, 0) // it did so before
			}
			return true
		}
		listens = true
		return c.listen(epoll, unix.EPOLLOUT) != nil
	})
	return n, outcome("sendto", err, errno)
}

// listen replaces the events of which writable's instance hears.
func (c *conn) listen(epoll uintptr, events uint32) error {
	return unix.EpollCtl(int(epoll), unix.EPOLL_CTL_MOD, int(c.fd), &unix.EpollEvent{Events: events})
}

// outcome is the error of a call, in the words of package net: a deadline or Close ended the wait for it, or it failed.
func outcome(call string, wait error, errno syscall.Errno) error {
	switch {
	case errors.Is(wait, os.ErrDeadlineExceeded):
		return wait
	case wait != nil:
		return net.ErrClosed
	case errno != 0:
		return os.NewSyscallError(call, errno)
	}
	return nil
}

// transfer makes one call that does not wait.
func transfer(call, fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall6(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			return int(n), 0
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// Close ends what waits, and only then gives the descriptor back, which may be somebody else's at once.
func (c *conn) Close() error {
	err := net.ErrClosed
	c.closing.Do(func() {
		err = errors.Join(c.readable.file.Close(), c.writable.file.Close(), c.socket.Close())
	})
	return err
}

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *conn) SetReadDeadline(t time.Time) error { return c.readable.file.SetReadDeadline(t) }

func (c *conn) SetWriteDeadline(t time.Time) error { return c.writable.file.SetReadDeadline(t) }

func (c *conn) LocalAddr() net.Addr { return &net.UnixAddr{Net: "unix"} }

func (c *conn) RemoteAddr() net.Addr { return &net.UnixAddr{Net: "unix"} }
