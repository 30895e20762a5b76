package logs

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	queueLines = 8192    // lines that wait for the writer at most
	queueBytes = 4 << 20 // bytes of them at most
	closeGrace = 250 * time.Millisecond
)

// queue is an io.Writer that never blocks: one goroutine of its own passes the lines on. When the queue is full the new
// line is dropped, not an old one, so that what led to a flood can still be read.
type queue struct {
	w       io.Writer
	linesC  chan []byte // never closed
	stopC   chan struct{}
	doneC   chan struct{} // closed by run
	stop    sync.Once
	waiting atomic.Int64 // bytes in linesC
	stopped atomic.Bool
	dropped atomic.Uint64
}

func newQueue(w io.Writer) *queue {
	q := &queue{w: w, linesC: make(chan []byte, queueLines), stopC: make(chan struct{}), doneC: make(chan struct{})}
	go q.run()
	return q
}

// Write queues a copy of line or drops it; either way it returns at once, and never an error.
func (q *queue) Write(line []byte) (int, error) {
	if q.stopped.Load() || !q.push(append([]byte(nil), line...)) {
		q.dropped.Add(1)
	}
	return len(line), nil
}

func (q *queue) push(line []byte) bool {
	size := int64(len(line))
	if q.waiting.Add(size) <= queueBytes {
		select {
		case q.linesC <- line:
			return true
		default:
		}
	}
	q.waiting.Add(-size)
	return false
}

func (q *queue) run() {
	defer close(q.doneC)
	for {
		select {
		case line := <-q.linesC:
			q.pass(line)
		case <-q.stopC:
			q.drain()
			return
		}
	}
}

// drain passes on what was queued before the stop.
func (q *queue) drain() {
	for {
		select {
		case line := <-q.linesC:
			q.pass(line)
		default:
			return
		}
	}
}

func (q *queue) pass(line []byte) {
	q.waiting.Add(-int64(len(line)))
	if _, err := q.w.Write(line); err != nil {
		q.dropped.Add(1)
	}
}

func (q *queue) close() error {
	q.stopped.Store(true)
	q.stop.Do(func() { close(q.stopC) })
	timeout := time.NewTimer(closeGrace)
	defer timeout.Stop()
	select {
	case <-q.doneC:
		return nil
	case <-timeout.C:
		return fmt.Errorf("log: %d bytes left that nobody reads", q.waiting.Load())
	}
}
