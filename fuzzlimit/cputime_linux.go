package fuzzlimit

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what the calling thread has run.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		panic(err) // it has no other argument
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
