package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// nameProcess tells ps and top what this is: the kernel would show the name of the link it was started by. It shows 15 bytes.
func nameProcess(name string) {
	b, err := unix.BytePtrFromString(name)
	if err == nil {
		_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(b)), 0, 0, 0) // a name is no more than that
	}
}
