package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// nameProcess tells ps and top what this is: the kernel would show the name of the link it was started by.
func nameProcess() {
	name := []byte("vllm-vcr-worker"[:15] + "\x00") // 16 bytes is the kernel's limit
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
}
