package zmtp

import (
	"fmt"
	"slices"
	"sync"
)

const (
	chunkSize = 64 << 10
	maxSpare  = 16 // chunks kept for reuse: 1 MiB for each connection
)

// queue holds encoded frames until the writer takes them. It is a list of
// chunks, so a burst costs no copying of what is queued already, and the memory
// of a burst goes back when it has been written. A body larger than a chunk gets
// one of its own size. Above its limit, where it has one, it takes no message.
type queue struct {
	high, low int64 // marks, see Options
	most      int64 // bytes, 0 = no limit

	mu       sync.Mutex
	changed  sync.Cond // for the one writer: something to write, or the end
	chunks   [][]byte  // whole messages, in order; the last has room
	spare    [][]byte  // empty, each of capacity chunkSize
	pong     []byte    // the newest PONG not yet taken: one is enough, however many PINGs came
	queued   int64     // bytes not yet handed to the kernel, taken ones included
	above    bool      // high was reached, and low not since
	refusal  error     // set by seal and kill: why push refuses
	killed   bool      // nothing is to be written any more
	claimed  bool      // a sender has the writer's place, see claim
	messages uint64    // accepted
}

func newQueue(o *Options) *queue {
	q := &queue{high: o.HighWater, low: o.LowWater, most: o.MaxQueued}
	q.changed.L = &q.mu
	return q
}

// push appends one message, copying its frames.
func (q *queue) push(frames [][]byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refusal != nil {
		return q.refusal
	}
	if queued := q.queued + size(frames); q.most > 0 && queued > q.most {
		return fmt.Errorf("%w: %d bytes wait, want at most %d", ErrBehind, queued, q.most)
	}
	for i, f := range frames {
		q.appendFrame(flagsOf(i, len(frames)), f)
	}
	q.messages++
	q.grown()
	return nil
}

// size is that of the frames without their headers, in bytes.
func size(frames [][]byte) (n int64) {
	for _, f := range frames {
		n += int64(len(f))
	}
	return n
}

// claim gives a sender the writer's place for one message, if nothing is before
// it. Who got it must release it.
func (q *queue) claim() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refusal != nil || q.claimed || q.queued > 0 {
		return false
	}
	q.claimed = true
	q.messages++
	return true
}

// release gives the writer its place back, and rest, which is kept, to be
// written before everything that was queued meanwhile.
func (q *queue) release(rest []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.claimed = false
	q.queued += int64(len(rest))
	if len(rest) > 0 && !q.killed {
		q.chunks = slices.Insert(q.chunks, 0, rest)
	}
	if q.queued > 0 || q.refusal != nil {
		q.grown()
	}
}

// pushCommand appends one command frame.
func (q *queue) pushCommand(name string, data []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refusal != nil {
		return q.refusal
	}
	frame := appendCommand(nil, name, data)
	q.queued += int64(len(frame))
	q.appendBytes(frame)
	q.grown()
	return nil
}

// setPong replaces the PONG that is to leave before the next message.
func (q *queue) setPong(context []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refusal != nil {
		return
	}
	q.queued -= int64(len(q.pong))
	q.pong = appendCommand(q.pong[:0], commandPong, context)
	q.queued += int64(len(q.pong))
	q.grown()
}

// grown tells the writer, and notes the high mark.
func (q *queue) grown() {
	if q.high > 0 && q.queued >= q.high {
		q.above = true
	}
	q.changed.Signal()
}

func (q *queue) appendFrame(flags byte, body []byte) {
	var buf [maxHeaderSize]byte
	head := appendHeader(buf[:0], flags, len(body))
	q.queued += int64(len(head) + len(body))
	q.appendBytes(head)
	q.appendBytes(body)
}

func (q *queue) appendBytes(b []byte) {
	for len(b) > 0 {
		if n := len(q.chunks); n == 0 || len(q.chunks[n-1]) == cap(q.chunks[n-1]) {
			q.chunks = append(q.chunks, q.newChunk(len(b)))
		}
		last := &q.chunks[len(q.chunks)-1]
		n := min(len(b), cap(*last)-len(*last))
		*last = append(*last, b[:n]...)
		b = b[n:]
	}
}

// newChunk returns an empty chunk, of size bytes where that is more than usual.
func (q *queue) newChunk(size int) []byte {
	if size > chunkSize {
		return make([]byte, 0, size)
	}
	n := len(q.spare)
	if n == 0 {
		return make([]byte, 0, chunkSize)
	}
	c := q.spare[n-1]
	q.spare[n-1] = nil
	q.spare = q.spare[:n-1]
	return c
}

// take waits for something to write and returns all of it, in whole messages;
// the list uses the memory of into. more is false when nothing will follow.
func (q *queue) take(into [][]byte) (chunks [][]byte, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.claimed || len(q.chunks) == 0 && len(q.pong) == 0 && q.refusal == nil {
		q.changed.Wait()
	}
	if q.killed || len(q.chunks) == 0 && len(q.pong) == 0 {
		return into[:0], false
	}
	into = into[:0]
	if len(q.pong) > 0 {
		into = append(into, append(q.newChunk(0), q.pong...))
		q.pong = q.pong[:0]
	}
	if len(into) == 0 {
		q.chunks, into = into, q.chunks
		return into, true
	}
	into = append(into, q.chunks...)
	clear(q.chunks)
	q.chunks = q.chunks[:0]
	return into, true
}

// wrote counts n bytes out. It reports whether the queue has thereby fallen
// below its low mark.
func (q *queue) wrote(n int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queued -= n
	if !q.above || q.queued >= q.low {
		return false
	}
	q.above = false
	return true
}

// recycle takes back written chunks and forgets those it need not keep.
func (q *queue) recycle(chunks [][]byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range chunks {
		if cap(c) == chunkSize && len(q.spare) < maxSpare && !q.killed {
			q.spare = append(q.spare, c[:0])
		}
	}
	clear(chunks)
}

// seal lets what is queued leave and refuses the rest with err.
func (q *queue) seal(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refusal == nil {
		q.refusal = err
	}
	q.changed.Signal()
}

// kill refuses everything with err and forgets what is queued; its size stays
// in queued.
func (q *queue) kill(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refusal, q.killed = err, true
	q.chunks, q.spare, q.pong = nil, nil, nil
	q.changed.Signal()
}

// unsent is the number of bytes accepted and not handed to the kernel.
func (q *queue) unsent() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queued
}

func (q *queue) accepted() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.messages
}
