package engine

import "cmp"

// queue is a binary heap of requests that knows where each of them sits, so that any can be taken out. A request is in
// one queue at a time.
type queue struct {
	items []*Request
	less  func(a, b *Request) bool
}

func byArrival(a, b *Request) bool { return a.arrival < b.arrival }

func byPriority(a, b *Request) bool {
	if a.Priority != b.Priority {
		return a.Priority < b.Priority
	}
	if c := cmp.Compare(a.ArrivalTime, b.ArrivalTime); c != 0 {
		return c < 0
	}
	return a.arrival < b.arrival
}

func byLeaveTime(a, b *Request) bool {
	if a.leave != b.leave {
		return a.leave < b.leave
	}
	return a.turn < b.turn
}

func (q *queue) len() int { return len(q.items) }

// first returns the least request, or nil.
func (q *queue) first() *Request {
	if len(q.items) == 0 {
		return nil
	}
	return q.items[0]
}

func (q *queue) push(r *Request) {
	r.pos = len(q.items)
	q.items = append(q.items, r)
	q.up(r.pos)
}

// pop takes out the least request, or returns nil.
func (q *queue) pop() *Request {
	r := q.first()
	if r != nil {
		q.remove(r)
	}
	return r
}

func (q *queue) remove(r *Request) {
	last := len(q.items) - 1
	i := r.pos
	q.swap(i, last)
	q.items[last] = nil
	q.items = q.items[:last]
	if i < last && !q.down(i) {
		q.up(i)
	}
}

// restore makes a heap of the items again after their keys were changed.
func (q *queue) restore() {
	for i := len(q.items)/2 - 1; i >= 0; i-- {
		q.down(i)
	}
}

func (q *queue) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !q.less(q.items[i], q.items[parent]) {
			return
		}
		q.swap(i, parent)
		i = parent
	}
}

// down reports whether the item at i moved.
func (q *queue) down(i int) bool {
	start := i
	for {
		child := 2*i + 1
		if child >= len(q.items) {
			break
		}
		if right := child + 1; right < len(q.items) && q.less(q.items[right], q.items[child]) {
			child = right
		}
		if !q.less(q.items[child], q.items[i]) {
			break
		}
		q.swap(i, child)
		i = child
	}
	return i > start
}

func (q *queue) swap(i, j int) {
	q.items[i], q.items[j] = q.items[j], q.items[i]
	q.items[i].pos, q.items[j].pos = i, j
}
