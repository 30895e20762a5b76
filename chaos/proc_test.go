//go:build chaos

package chaos

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// processState returns the state letter and the parent of a process, or zeros if there is none.
func processState(pid int) (state byte, parent int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	afterName := stat[bytes.LastIndexByte(stat, ')')+1:] // the name may hold anything
	if _, err := fmt.Sscanf(string(afterName), " %c %d", &state, &parent); err != nil {
		return 0, 0
	}
	return state, parent
}

// children returns the processes whose parent is pid, those included that have ended and were not waited for.
func children(pid int) []int {
	var found []int
	for _, child := range processes() {
		if _, parent := processState(child); parent == pid {
			found = append(found, child)
		}
	}
	return found
}

// processes are the numbers of all processes there are.
func processes() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		panic(err) // Linux without /proc
	}
	var all []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// descendants are the children of a process, theirs, and so on.
func descendants(pid int) []int {
	var all []int
	for _, child := range children(pid) {
		all = append(append(all, child), descendants(child)...)
	}
	return all
}

// awaitGone waits until none of the processes runs any more.
func awaitGone(t *testing.T, within time.Duration, pids ...int) {
	t.Helper()
	eventually(t, within, func() error {
		for _, pid := range pids {
			if state, _ := processState(pid); state != 'Z' && state != 0 {
				return fmt.Errorf("process %d still runs, state %c", pid, state)
			}
		}
		return nil
	})
}

// zombies are the children of a process that have ended and were not waited for.
func zombies(pid int) []int {
	var found []int
	for _, child := range children(pid) {
		if state, _ := processState(child); state == 'Z' {
			found = append(found, child)
		}
	}
	return found
}

// cpuTime is what a process has used of the processors so far. Of one that has gone it is 0.
func cpuTime(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.Atoi(fields[11]) // the kernel writes numbers there
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * (time.Second / 100)
}

// resident is the memory of a process at the moment, and peak the most it ever had, in bytes.
func resident(t *testing.T, pid int) (now, peak int64) {
	t.Helper()
	return status(t, pid, "VmRSS") << 10, status(t, pid, "VmHWM") << 10
}

// status is a number of /proc/PID/status.
func status(t *testing.T, pid int, key string) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut("\n"+string(text), "\n"+key+":")
	var n int64
	if _, err := fmt.Sscan(rest, &n); !found || err != nil {
		t.Fatalf("/proc/%d/status has no number %s: %v", pid, key, err)
	}
	return n
}

// descriptors are what the open descriptors of a process lead to.
func descriptors(t *testing.T, pid int) []string {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
			list = append(list, target)
		}
	}
	return list
}

// frontEnd finds serve's front end among its children.
func frontEnd(t *testing.T, p *program) int {
	t.Helper()
	for _, pid := range children(p.pid()) {
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && bytes.Contains(line, []byte("front-end")) {
			return pid
		}
	}
	t.Fatalf("process %d has no front end", p.pid())
	return 0
}
