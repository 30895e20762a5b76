package main

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// barePeriod is how often the bare timer fires: the grid of an engine's steps.
const barePeriod = 100 * time.Microsecond

// bareTimer is what pacing could be at best here: how late a thread that does nothing else wakes from a blocking read of a
// timerfd, armed for the next multiple of barePeriod each time.
func bareTimer(ctx context.Context, d time.Duration) (*hist, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var late hist
	var expirations [8]byte
	c := newClock()
	for end := c.now() + d; ctx.Err() == nil; {
		due := (c.now()/barePeriod + 1) * barePeriod
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(due))}
		if err := unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
			return nil, err
		}
		if _, err := unix.Read(fd, expirations[:]); err != nil && err != unix.EINTR {
			return nil, err
		}
		now := c.now()
		late.add(now - due)
		if now > end {
			return &late, nil
		}
	}
	return nil, context.Cause(ctx)
}
