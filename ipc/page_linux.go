package ipc

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// seals keep the size of a page's file: who could shrink it could end every process that has it mapped.
const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// NewPage makes a page in anonymous shared memory. The file stands for it in a child process, which opens it with
// [OpenPage]; the caller closes both.
func NewPage() (*Page, *os.File, error) {
	fd, err := unix.MemfdCreate("vllm-vcr-engine", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, fmt.Errorf("shared page: %w", err)
	}
	f := os.NewFile(uintptr(fd), "vllm-vcr-engine")
	if err := f.Truncate(int64(os.Getpagesize())); err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("shared page: %w", err)
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("shared page: seal: %w", err)
	}
	p, err := OpenPage(f)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return p, f, nil
}

// OpenPage maps the page that f stands for, and takes nothing but a file made by [NewPage]. f is not needed any more
// afterwards, and stays the caller's.
func OpenPage(f *os.File) (*Page, error) {
	if got, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0); err != nil || got&seals != seals {
		return nil, fmt.Errorf("shared page: descriptor %d is none", f.Fd())
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("shared page: %w", err)
	}
	if want := int64(unsafe.Sizeof(counters{})); info.Size() < want {
		return nil, fmt.Errorf("shared page: %d bytes, want at least %d", info.Size(), want)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("shared page: map: %w", err)
	}
	return &Page{counters: (*counters)(unsafe.Pointer(unsafe.SliceData(mem))), unmap: func() error { return unix.Munmap(mem) }}, nil
}
