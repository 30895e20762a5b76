package main

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// handedOn are the signals that an init passes to its program.
var handedOn = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// mustReap says that this is process 1 of a container: every process that loses its parent becomes its child, and nobody else takes
// their exit statuses.
func mustReap() bool { return os.Getpid() == 1 }

// runInit runs the program as a child, hands signals on to it and takes the exit statuses of all children, until the program ends. It
// returns the program's exit code. A process of its own does that, since a supervisor that took everybody's exit status would take
// those of its workers from whoever waits for them.
func runInit() int {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, handedOn...)
	runtime.LockOSThread() // the parent-death signal of the program follows this thread
	program, err := os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		// A group of its own, so that a terminal's Ctrl-C reaches it once, through us.
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		complain(os.Stderr, lines(err))
		return exitFailure
	}
	go func() { // ends with the process
		for s := range signals {
			_ = program.Signal(s) // one that has just ended needs none
		}
	}()
	return reapUntil(program.Pid)
}

// reapUntil takes the exit status of every child that ends, up to that of pid, of which it returns the exit code as a shell would.
func reapUntil(pid int) int {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // no child is left, though pid was one
			return exitFailure
		case ended == pid && status.Signaled():
			return 128 + int(status.Signal())
		case ended == pid:
			return status.ExitStatus()
		}
	}
}
