package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock turns instants of package time into readings of CLOCK_MONOTONIC, which engines on this machine put into their
// messages.
type clock struct {
	start time.Time
	base  time.Duration // what CLOCK_MONOTONIC showed at start
}

// newClock takes the closest of ten pairs of readings, since Go hides what its own instants stand on.
func newClock() clock {
	var best clock
	closest := time.Hour
	for range 10 {
		before := time.Now()
		var ts unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // every kernel has this clock
		if took := time.Since(before); took < closest {
			closest = took
			best = clock{start: before, base: time.Duration(ts.Nano()) - took/2}
		}
	}
	return best
}

func (c clock) now() time.Duration { return c.at(time.Now()) }

func (c clock) at(t time.Time) time.Duration { return c.base + t.Sub(c.start) }

// fromSeconds is an instant as messages carry it.
func fromSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
