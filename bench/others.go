package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// others tells what processes that bench did not start take of the machine.
type others struct {
	at        time.Time
	busy, own time.Duration
	known     bool
}

// watchOthers begins to watch. What bench starts meanwhile has to have ended, and been waited for, before share.
func watchOthers() others {
	busy, err := machineBusy()
	return others{at: time.Now(), busy: busy, own: familyCPU(), known: err == nil}
}

// share is how many processors the others kept busy since, -1 where the machine doesn't tell.
func (o others) share() float64 {
	busy, err := machineBusy()
	if err != nil || !o.known {
		return -1
	}
	return max(0, ratio((busy-o.busy-(familyCPU()-o.own)).Seconds(), time.Since(o.at).Seconds()))
}

// userHZ is the unit of /proc/stat, in ticks a second: fixed for programs, see proc(5) and time(7).
const userHZ = 100

// machineBusy is what all processors have spent on anything but idling, from /proc/stat; what a hypervisor took away
// counts too.
func machineBusy() (time.Duration, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	var user, nice, system, idle, iowait, irq, softirq, steal int64
	if _, err := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal); err != nil {
		return 0, fmt.Errorf("/proc/stat: %q: %w", line, err)
	}
	return time.Duration(user+nice+system+irq+softirq+steal) * (time.Second / userHZ), nil
}

// familyCPU is what this process has run, and those it started and waited for, with theirs.
func familyCPU() time.Duration {
	var children syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children) // it can't fail for one's own
	return ownCPU() + time.Duration(children.Utime.Nano()+children.Stime.Nano())
}
