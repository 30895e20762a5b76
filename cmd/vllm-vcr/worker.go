package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"vllm-vcr/ipc"
	"vllm-vcr/worker"
)

// The descriptors that a supervisor hands to a worker.
const (
	supervisorFD = 3
	pageFD       = 4
)

// workerThreads is how many threads of a worker run Go code at once. With a second one every message of a paced engine wakes it
// for nothing, which costs half as much again and makes tokens later (docs/performance.md).
const workerThreads = 1

// newWorker is the sub-command by which a supervisor starts its workers.
func newWorker() *cobra.Command {
	return &cobra.Command{
		Use:    "worker",
		Short:  "Run one engine for a supervisor",
		Hidden: true,
		Args:   noArguments,
		RunE:   func(*cobra.Command, []string) error { return runWorker() },
	}
}

func runWorker() error {
	nameProcess("vllm-vcr-worker")
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(workerThreads)
	}
	conn, page, err := inherited()
	if err != nil {
		return usageError{fmt.Errorf("this command is for a supervisor to start, use play: %w", err)}
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	signal.Ignore(syscall.SIGPIPE) // as in the supervisor
	return worker.Run(worker.Env{Supervisor: conn, Page: page, Stderr: os.Stderr, Signals: signals, Crash: crash})
}

// crash ends this process by a signal that nothing can handle.
func crash() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // it cannot fail for ourselves
	select {}
}

// inherited takes over what the supervisor left open for this process. Where nothing was left, these descriptors are of Go's
// runtime or of whoever started this, and stay untouched.
func inherited() (net.Conn, *ipc.Page, error) {
	if !isKind(supervisorFD, unix.S_IFSOCK) || !isKind(pageFD, unix.S_IFREG) {
		return nil, nil, fmt.Errorf("descriptors %d and %d are not a supervisor's socket and page", supervisorFD, pageFD)
	}
	conn, err := inheritedSocket()
	if err != nil {
		return nil, nil, err
	}
	pageFile := os.NewFile(pageFD, "page")
	defer pageFile.Close()
	page, err := ipc.OpenPage(pageFile)
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, page, nil
}

// inheritedSocket is the supervisor's socket alone.
func inheritedSocket() (net.Conn, error) {
	if !isKind(supervisorFD, unix.S_IFSOCK) {
		return nil, fmt.Errorf("descriptor %d is not a supervisor's socket", supervisorFD)
	}
	socket := os.NewFile(supervisorFD, "supervisor")
	defer socket.Close()
	conn, err := ipc.FileConn(socket)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d: %w", supervisorFD, err)
	}
	return conn, nil
}

// isKind says whether a descriptor is open on this kind of file.
func isKind(fd int, kind uint32) bool {
	var stat unix.Stat_t
	return unix.Fstat(fd, &stat) == nil && uint32(stat.Mode)&unix.S_IFMT == kind
}
