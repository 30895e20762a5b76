package zmtp

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sendNoWait returns how many bytes of b a socket took, or less than none. A call
// that can't wait needs no word to Go's scheduler, whose monitor thread would be
// woken by every one of them in a process that is idle in between.
func sendNoWait(fd uintptr, b []byte) int {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return -1
	}
	return int(n)
}
