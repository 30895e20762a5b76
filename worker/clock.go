package worker

import "time"

// Clock is the time that an engine lives by: nanoseconds of the host's monotonic clock, the clock of Python's
// time.monotonic, so that timestamps on the wire can be compared with a frontend's.
type Clock struct {
	start time.Time
	base  time.Duration
}

// Now returns the present instant. It costs as much as time.Since.
func (c Clock) Now() time.Duration { return c.base + time.Since(c.start) }

// Wall returns the time of day of an instant. What it adds to one is the same for the life of the process.
func (c Clock) Wall(t time.Duration) time.Time { return c.start.Add(t - c.base) }

// always is the alarm of something that is due already.
var always = closedChannel()

func closedChannel() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
