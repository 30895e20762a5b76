package engine

import (
	"cmp"
	"slices"
)

// calendar holds the requests whose next chunk leaves later, by the time at which it leaves. Those that leave at the same
// time share a day, so that a step looks at the heap of days once and not once for every request: on a grid of leave times
// the cost of a request does not grow with their number.
type calendar struct {
	days   map[Time]*day
	heap   queue[*day] // the earliest first
	recent *day        // the one that was written to last, mostly the next one's as well
	spare  []*day
}

// day is what leaves at one time.
type day struct {
	leave    Time
	pos      int        // in calendar.heap
	requests []*Request // nil = taken out again
	left     int        // those that are not nil
}

// maxSpareDays is how many empty days are kept, with the memory of what they held.
const maxSpareDays = 64

func newCalendar() calendar {
	return calendar{
		days: map[Time]*day{},
		heap: queue[*day]{
			less: func(a, b *day) bool { return a.leave < b.leave },
			pos:  func(d *day) *int { return &d.pos },
		},
	}
}

// add enters r at its leave time.
func (c *calendar) add(r *Request) {
	d := c.recent
	if d == nil || d.leave != r.leave {
		d = c.day(r.leave)
		c.recent = d
	}
	r.day, r.pos = d, len(d.requests)
	d.requests = append(d.requests, r)
	d.left++
}

// day returns that of a time, making it at first sight.
func (c *calendar) day(leave Time) *day {
	if d := c.days[leave]; d != nil {
		return d
	}
	d := c.blank()
	d.leave = leave
	c.days[leave] = d
	c.heap.push(d)
	return d
}

func (c *calendar) blank() *day {
	n := len(c.spare)
	if n == 0 {
		return &day{}
	}
	d := c.spare[n-1]
	c.spare = c.spare[:n-1]
	return d
}

// remove takes r out.
func (c *calendar) remove(r *Request) {
	d := r.day
	d.requests[r.pos] = nil
	r.day = nil
	if d.left--; d.left == 0 {
		c.strike(d)
	}
}

// strike takes out a day whose requests have been taken out.
func (c *calendar) strike(d *day) {
	c.heap.remove(d)
	delete(c.days, d.leave)
	if c.recent == d {
		c.recent = nil
	}
	clear(d.requests)
	d.requests, d.left = d.requests[:0], 0
	if len(c.spare) < maxSpareDays {
		c.spare = append(c.spare, d)
	}
}

// next is the earliest leave time, or Never.
func (c *calendar) next() Time {
	if d := c.heap.first(); d != nil {
		return d.leave
	}
	return Never
}

// take appends the requests of the earliest day to list, in order of admission, and strikes the day.
func (c *calendar) take(list []*Request) []*Request {
	d := c.heap.first()
	from := len(list)
	for _, r := range d.requests {
		if r != nil {
			r.day = nil
			list = append(list, r)
		}
	}
	if taken := list[from:]; !slices.IsSortedFunc(taken, byTurn) {
		slices.SortFunc(taken, byTurn)
	}
	c.strike(d)
	return list
}

func (c *calendar) empty() bool { return c.heap.len() == 0 }

func byTurn(a, b *Request) int { return cmp.Compare(a.turn, b.turn) }
