package main

import (
	"fmt"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// member is one process of a tree, told apart from a later one of the same id by its start.
type member struct {
	procfs.Proc
	parent int
	start  uint64 // in clock ticks since the boot
}

func readMember(pid int) (member, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return member{}, err
	}
	s, err := p.Stat()
	return member{p, s.PPID, s.Starttime}, err
}

// kill ends the process if it still is the one it was.
func (m member) kill() {
	if now, err := readMember(m.PID); err == nil && now.start == m.start {
		_ = syscall.Kill(m.PID, syscall.SIGKILL) // it may have gone meanwhile
	}
}

// processTree lists a process and all that descend from it, the root first.
func processTree(root int) ([]member, error) {
	head, err := readMember(root)
	if err != nil {
		return nil, err
	}
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	children := map[int][]member{}
	for _, p := range all {
		if m, err := readMember(p.PID); err == nil { // else it has just gone
			children[m.parent] = append(children[m.parent], m)
		}
	}
	tree := []member{head}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i].PID]...)
	}
	return tree, nil
}

// cpuTime is what the living threads of a process have run, to the nanosecond, and switches how often they gave up their
// processor to wait.
func (m member) cpuTime() (ran time.Duration, switches uint64, err error) {
	threads, err := procfs.AllThreads(m.PID)
	if err != nil {
		return 0, 0, err
	}
	found := false
	for _, t := range threads {
		scheduled, err := t.Schedstat()
		if err != nil {
			continue // the thread has just gone
		}
		found = true
		ran += time.Duration(scheduled.RunningNanoseconds)
		if s, err := t.NewStatus(); err == nil {
			switches += s.VoluntaryCtxtSwitches
		}
	}
	if !found {
		return 0, 0, fmt.Errorf("process %d has no schedstat", m.PID)
	}
	return ran, switches, nil
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
		cpu, switches, err := m.cpuTime()
		if err != nil {
			return usage{}, err
		}
		memory, err := m.Statm()
		if err != nil {
			return usage{}, err
		}
		u.cpu, u.resident, u.switches = append(u.cpu, cpu), append(u.resident, int64(memory.ResidentBytes())), append(u.switches, switches)
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
