//go:build !linux

package fuzzlimit

import "time"

var start = time.Now()

// cpuTime is the time that has passed, where a thread's own can't be had.
func cpuTime() time.Duration { return time.Since(start) }
