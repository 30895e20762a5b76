package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// busyArg makes bench a process that is as busy as it can be and answers pings, idleArg one that only answers them: see
// floor.
const (
	busyArg = "busy"
	idleArg = "idle"
)

// busySocket is the descriptor of the pings.
const busySocket = 3

// runBusy answers pings and keeps another thread busy.
func runBusy() error {
	go func() {
		for x := uint64(1); ; x++ {
			runtime.KeepAlive(x)
		}
	}()
	return runIdle()
}

// runIdle answers every byte on the socket by one, from a thread that does nothing else. It ends with the socket.
func runIdle() error {
	runtime.LockOSThread()
	var b [1]byte
	for {
		if n, err := unix.Read(busySocket, b[:]); err != nil || n == 0 {
			return err
		}
		if _, err := unix.Write(busySocket, b[:]); err != nil {
			return err
		}
	}
}

// floor is what a call to several engines costs at least: it pings that many processes, one after the other, and then takes
// their answers in the same order. load is busyArg or idleArg.
func floor(ctx context.Context, processes int, load string, d time.Duration) (*hist, error) {
	sockets := make([]int, processes)
	for i := range sockets {
		var cmd *exec.Cmd
		var err error
		if sockets[i], cmd, err = startPinged(ctx, load); err != nil {
			return nil, fmt.Errorf("%s process %d: %w", load, i, err)
		}
		defer func() {
			_ = unix.Close(sockets[i])
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		}()
	}
	var times hist
	for end := time.Now().Add(d); time.Now().Before(end); {
		start := time.Now()
		if err := pingAll(sockets); err != nil {
			return nil, err
		}
		times.add(time.Since(start))
		if err := pause(ctx, betweenCalls); err != nil {
			return nil, err
		}
	}
	return &times, nil
}

func startPinged(ctx context.Context, load string) (socket int, cmd *exec.Cmd, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, err
	}
	theirs := os.NewFile(uintptr(pair[1]), "ping")
	defer theirs.Close()
	cmd = exec.CommandContext(ctx, self, load)
	cmd.ExtraFiles, cmd.Stderr = []*os.File{theirs}, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		_ = unix.Close(pair[0])
		return 0, nil, err
	}
	return pair[0], cmd, nil
}

func pingAll(sockets []int) error {
	b := [1]byte{1}
	for _, s := range sockets {
		if _, err := unix.Write(s, b[:]); err != nil {
			return err
		}
	}
	for _, s := range sockets {
		if n, err := unix.Read(s, b[:]); err != nil || n != 1 {
			return fmt.Errorf("ping: %d bytes: %w", n, err)
		}
	}
	return nil
}
