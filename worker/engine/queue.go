package engine

import "cmp"

// queue is a binary heap that knows where each item sits, so that any can be taken out. An item is in one queue at a time.
type queue[T any] struct {
	items []T
	less  func(a, b T) bool
	pos   func(T) *int // where an item keeps its place
}

// requestQueue orders requests.
func requestQueue(less func(a, b *Request) bool) queue[*Request] {
	return queue[*Request]{less: less, pos: func(r *Request) *int { return &r.pos }}
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

func (q *queue[T]) len() int { return len(q.items) }

// first returns the least item, or the zero value.
func (q *queue[T]) first() (least T) {
	if len(q.items) > 0 {
		least = q.items[0]
	}
	return least
}

func (q *queue[T]) push(item T) {
	at := len(q.items)
	*q.pos(item) = at
	q.items = append(q.items, item)
	q.up(at)
}

// pop takes out the least item, or returns the zero value.
func (q *queue[T]) pop() T {
	least := q.first()
	if len(q.items) > 0 {
		q.remove(least)
	}
	return least
}

func (q *queue[T]) remove(item T) {
	last := len(q.items) - 1
	i := *q.pos(item)
	q.swap(i, last)
	clear(q.items[last:])
	q.items = q.items[:last]
	if i < last && !q.down(i) {
		q.up(i)
	}
}

func (q *queue[T]) up(i int) {
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
func (q *queue[T]) down(i int) bool {
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

func (q *queue[T]) swap(i, j int) {
	q.items[i], q.items[j] = q.items[j], q.items[i]
	*q.pos(q.items[i]), *q.pos(q.items[j]) = i, j
}
