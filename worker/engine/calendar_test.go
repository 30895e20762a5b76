package engine

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// A calendar beside a plain list: whatever is added and taken out, the same requests leave in the same order, by leave time
// and then by admission.
func TestCalendar(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	c := newCalendar()
	var list []*Request
	add := func(turn uint64, leave Time) {
		r := &Request{turn: turn, leave: leave}
		c.add(r)
		list = append(list, r)
	}
	for step := range uint64(20_000) {
		switch rng.IntN(4) {
		case 0, 1:
			add(step, Time(rng.IntN(50)))
		case 2:
			if n := len(list); n > 0 {
				i := rng.IntN(n)
				c.remove(list[i])
				list = slices.Delete(list, i, i+1)
			}
		default:
			list = takeEarliest(t, &c, list)
		}
	}
	for len(list) > 0 {
		list = takeEarliest(t, &c, list)
	}
	if !c.empty() || c.next() != Never || len(c.days) > 0 {
		t.Errorf("after all left: empty %v, next %v, %d days, want true, Never, 0", c.empty(), c.next(), len(c.days))
	}
}

// takeEarliest takes the earliest day and compares it with the list, which it returns without them.
func takeEarliest(t *testing.T, c *calendar, list []*Request) []*Request {
	t.Helper()
	if len(list) == 0 {
		return list
	}
	slices.SortFunc(list, func(a, b *Request) int { return cmp.Or(cmp.Compare(a.leave, b.leave), cmp.Compare(a.turn, b.turn)) })
	n := 1
	for n < len(list) && list[n].leave == list[0].leave {
		n++
	}
	if got := c.next(); got != list[0].leave {
		t.Fatalf("next = %v, want %v", got, list[0].leave)
	}
	if got := c.take(nil); !slices.Equal(got, list[:n]) {
		t.Fatalf("%d requests taken at %v, want the %d of the list in its order", len(got), list[0].leave, n)
	}
	return list[n:]
}

// Many requests on few leave times cost no memory that grows with the steps.
func TestCalendar_DoesNotAllocate(t *testing.T) {
	c := newCalendar()
	list := make([]*Request, 512)
	for i := range list {
		list[i] = &Request{turn: uint64(i), leave: Time(i % 16)}
		c.add(list[i])
	}
	taken := make([]*Request, 0, len(list))
	step := func() {
		taken = c.take(taken[:0])
		for _, r := range taken {
			r.leave += 16
			c.add(r)
		}
	}
	for range 100 {
		step() // every day has grown to its size
	}
	if n := testing.AllocsPerRun(1000, step); n > 0 {
		t.Errorf("%v allocations a step, want 0", n)
	}
}
