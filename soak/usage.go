package main

import (
	"fmt"
	"strings"

	"github.com/prometheus/procfs"
)

// usage is what one process holds at a moment.
type usage struct {
	resident             int64 // bytes
	descriptors, threads int
	goroutines           int // 0 = it is not ours
}

// What a process may hold more at the end than after the warm-up. Threads are made for calls that block and never given back by Go; what
// bounds them is that there is no new one for each request, fault or restart.
const (
	residentFactor  = 1.25
	residentMore    = 16 << 20
	descriptorsMore = 2
	threadsMore     = 6
	goroutinesMore  = 4
)

// readUsage reads what a process holds.
func readUsage(pid int) (usage, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return usage{}, err
	}
	stat, err := p.Stat()
	if err != nil {
		return usage{}, err
	}
	descriptors, err := p.FileDescriptorsLen()
	return usage{resident: int64(stat.ResidentMemory()), descriptors: descriptors, threads: stat.NumThreads}, err
}

// exceeds says where a process holds more than it did before, beyond what is allowed; "" = nowhere.
func (u usage) exceeds(before usage) string {
	var faults []string
	if most := int64(float64(before.resident)*residentFactor) + residentMore; u.resident > most {
		faults = append(faults, fmt.Sprintf("%d KiB resident, %d after the warm-up, at most %d", u.resident>>10, before.resident>>10, most>>10))
	}
	if u.descriptors > before.descriptors+descriptorsMore {
		faults = append(faults, fmt.Sprintf("%d descriptors, %d after the warm-up, at most %d more", u.descriptors, before.descriptors, descriptorsMore))
	}
	if u.threads > before.threads+threadsMore {
		faults = append(faults, fmt.Sprintf("%d threads, %d after the warm-up, at most %d more", u.threads, before.threads, threadsMore))
	}
	if u.goroutines > before.goroutines+goroutinesMore {
		faults = append(faults, fmt.Sprintf("%d goroutines, %d after the warm-up, at most %d more", u.goroutines, before.goroutines, goroutinesMore))
	}
	return strings.Join(faults, "; ")
}

// plus adds up processes.
func (u usage) plus(other usage) usage {
	return usage{u.resident + other.resident, u.descriptors + other.descriptors, u.threads + other.threads, u.goroutines + other.goroutines}
}
