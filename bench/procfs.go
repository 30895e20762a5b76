package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// member is one process of a tree, told apart from a later one of the same id by its start.
type member struct {
	pid, parent int
	start       string // in clock ticks since the boot, as /proc has it
}

// readMember reads /proc/PID/stat: "pid (name) state ppid … starttime …", where the name may hold anything.
func readMember(pid int) (member, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return member{}, err
	}
	const parent, start = 1, 19 // of the fields behind the name
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) <= start {
		return member{}, fmt.Errorf("/proc/%d/stat: %d fields behind the name, want more than %d", pid, len(fields), start)
	}
	ppid, err := strconv.Atoi(fields[parent])
	if err != nil {
		return member{}, fmt.Errorf("/proc/%d/stat: parent: %w", pid, err)
	}
	return member{pid: pid, parent: ppid, start: fields[start]}, nil
}

// kill ends the process if it still is the one it was.
func (m member) kill() {
	if now, err := readMember(m.pid); err == nil && now.start == m.start {
		_ = syscall.Kill(m.pid, syscall.SIGKILL) // it may have gone meanwhile
	}
}

// processTree lists a process and all that descend from it, the root first.
func processTree(root int) ([]member, error) {
	head, err := readMember(root)
	if err != nil {
		return nil, err
	}
	children := map[int][]member{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue // not a process
		}
		if m, err := readMember(pid); err == nil { // else it has just gone
			children[m.parent] = append(children[m.parent], m)
		}
	}
	tree := []member{head}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i].pid]...)
	}
	return tree, nil
}

// cpuTime is what the living threads of a process have run, from /proc/PID/task/TID/schedstat, to the nanosecond.
func (m member) cpuTime() (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", m.pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("process %d has no schedstat", m.pid)
	}
	var total time.Duration
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has just gone
		}
		first, _, _ := strings.Cut(string(b), " ")
		ns, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		total += time.Duration(ns)
	}
	return total, nil
}

// switches is how often the living threads of a process gave up their processor to wait, from /proc/PID/task/TID/status.
func (m member) switches() uint64 {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", m.pid)) // the pattern is good
	var total uint64
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has just gone
		}
		_, line, found := strings.Cut(string(b), "\nvoluntary_ctxt_switches:\t")
		digits, _, _ := strings.Cut(line, "\n")
		if n, err := strconv.ParseUint(digits, 10, 64); found && err == nil {
			total += n
		}
	}
	return total
}

// resident is the process's resident set in bytes, from /proc/PID/statm.
func (m member) resident() (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", m.pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/%d/statm: %d fields, want at least 2", m.pid, len(fields))
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/%d/statm: %w", m.pid, err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// usage is what a tree of processes has used at one moment.
type usage struct {
	at       time.Time
	cpu      []time.Duration // by process, the root first
	resident []int64         // bytes
	switches []uint64        // how often its threads have gone to sleep
}

// readUsage reads the usage of an engine command and its workers.
func readUsage(root int) (usage, error) {
	tree, err := processTree(root)
	if err != nil {
		return usage{}, err
	}
	u := usage{at: time.Now()}
	for _, m := range tree {
		cpu, err := m.cpuTime()
		if err != nil {
			return usage{}, err
		}
		rss, err := m.resident()
		if err != nil {
			return usage{}, err
		}
		u.cpu, u.resident, u.switches = append(u.cpu, cpu), append(u.resident, rss), append(u.switches, m.switches())
	}
	return u, nil
}

// cpuSince is what the whole tree has run since an earlier reading.
func (u usage) cpuSince(earlier usage) time.Duration {
	var sum time.Duration
	for _, d := range u.cpu {
		sum += d
	}
	for _, d := range earlier.cpu {
		sum -= d
	}
	return sum
}

// workers is where the workers start in the lists: a command without children does the work itself.
func (u usage) workers() int {
	if len(u.cpu) > 1 {
		return 1
	}
	return 0
}
