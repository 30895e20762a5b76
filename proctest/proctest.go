// Package proctest watches real processes for tests, by what /proc says of them. It knows nothing of vllm-vcr, and nothing but
// tests may import it.
package proctest

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
)

// Eventually polls check every 5 ms until it returns nil, and fails the test with its last complaint after within.
func Eventually(t testing.TB, within time.Duration, check func() error) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(within)
	for err := check(); err != nil; err = check() {
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %v", within, err)
		}
		<-tick.C
	}
}

// AwaitGone waits until none of the processes runs, and fails the test after within.
func AwaitGone(t testing.TB, within time.Duration, pids ...int) {
	t.Helper()
	Eventually(t, within, func() error {
		for _, pid := range pids {
			if Runs(pid) {
				return fmt.Errorf("process %d still runs, state %s", pid, State(pid))
			}
		}
		return nil
	})
}

// Runs says whether a process is there and has not ended. One that has ended and was not waited for does not run.
func Runs(pid int) bool { return !slices.Contains([]string{"", "Z", "X"}, State(pid)) }

// State is a process's letter in /proc/PID/stat, as proc(5) has them: R, S, T, Z and so on. It is "" where there is no such
// process.
func State(pid int) string {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return ""
	}
	return stat(p).State
}

// stat is what /proc/PID/stat says of a process, nothing if it has gone.
func stat(p procfs.Proc) procfs.ProcStat {
	s, err := p.Stat()
	if err != nil && !gone(err) {
		panic(err) // it is not as proc(5) has it
	}
	return s
}

// gone says whether err means that a process has ended.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// All are the processes there are.
func All(t testing.TB) procfs.Procs {
	t.Helper()
	all, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Children are the processes whose parent is pid, those included that have ended and were not waited for.
func Children(t testing.TB, pid int) []int {
	t.Helper()
	var found []int
	for _, p := range All(t) {
		if stat(p).PPID == pid {
			found = append(found, p.PID)
		}
	}
	return found
}

// Descendants are the children of a process, theirs, and so on.
func Descendants(t testing.TB, pid int) []int {
	t.Helper()
	var all []int
	for _, child := range Children(t, pid) {
		all = append(append(all, child), Descendants(t, child)...)
	}
	return all
}

// ChildNamed is the child of a process that was started with word in its command line. The test fails where there is none.
func ChildNamed(t testing.TB, parent int, word string) int {
	t.Helper()
	for _, pid := range Children(t, parent) {
		p, err := procfs.NewProc(pid)
		if err != nil {
			continue // it has just gone
		}
		if line, err := p.CmdLine(); err == nil && strings.Contains(strings.Join(line, " "), word) {
			return pid
		}
	}
	t.Fatalf("process %d has no child that was started as %s", parent, word)
	return 0
}

// Descriptors are what the open descriptors of a process lead to, without one that only this look opens.
func Descriptors(t testing.TB, pid int) []string {
	t.Helper()
	targets, err := must(t, pid).FileDescriptorTargets()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(targets, func(s string) bool { return s == "" })
}

// Status is /proc/PID/status, sizes in bytes. The test fails where there is no such process.
func Status(t testing.TB, pid int) procfs.ProcStatus {
	t.Helper()
	s, err := must(t, pid).NewStatus()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func must(t testing.TB, pid int) procfs.Proc {
	t.Helper()
	p, err := procfs.NewProc(pid)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// CPUTime is what processes have used of the processors so far, in steps of 10 ms. Those that have gone count nothing.
func CPUTime(pids ...int) (sum time.Duration) {
	for _, pid := range pids {
		if p, err := procfs.NewProc(pid); err == nil {
			sum += time.Duration(stat(p).CPUTime() * float64(time.Second))
		}
	}
	return sum
}
