package main

import (
	"syscall"
	"time"

	"github.com/prometheus/procfs"
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

// machineBusy is what all processors have spent on anything but idling; what a hypervisor took away counts too.
func machineBusy() (time.Duration, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	s, err := fs.Stat()
	if err != nil {
		return 0, err
	}
	all := s.CPUTotal
	busy := all.User + all.Nice + all.System + all.IRQ + all.SoftIRQ + all.Steal
	return time.Duration(busy * float64(time.Second)), nil
}

// familyCPU is what this process has run, and those it started and waited for, with theirs.
func familyCPU() time.Duration {
	var children syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children) // it can't fail for one's own
	return ownCPU() + time.Duration(children.Utime.Nano()+children.Stime.Nano())
}
