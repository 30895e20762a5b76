package dispatch

import (
	"context"
	"fmt"
	"io"
)

// Merged is several streams as one, for one consumer.
type Merged struct {
	streams []*Stream // that have not ended
	turn    int
	wakeC   chan struct{} // capacity 1, filled by each of them. Never closed
}

// Merge takes streams over from their consumers: from now on they are read here only.
func Merge(streams ...*Stream) *Merged {
	m := &Merged{streams: append([]*Stream(nil), streams...), wakeC: make(chan struct{}, 1)}
	for _, s := range streams {
		s.wakeBy(m.wakeC)
	}
	return m
}

// Next takes what there is of the next stream in turn that has something, waiting for one if need be. Where a stream ended
// otherwise than with a finish reason, it is returned with the error of [Stream.Poll] and not read again. When all have ended the
// error is io.EOF, and the cause of ctx when that ends; the stream is nil in these two cases. The chunk is valid until the
// next of its stream is taken.
func (m *Merged) Next(ctx context.Context) (*Stream, Chunk, error) {
	for {
		if s, c, err := m.poll(); s != nil {
			return s, c, err
		}
		if len(m.streams) == 0 {
			return nil, Chunk{}, io.EOF
		}
		select {
		case <-m.wakeC:
		case <-ctx.Done():
			return nil, Chunk{}, fmt.Errorf("await output: %w", context.Cause(ctx))
		}
	}
}

// poll asks each stream once; nil if none has anything.
func (m *Merged) poll() (*Stream, Chunk, error) {
	for left := len(m.streams); left > 0; left-- {
		m.turn %= len(m.streams)
		s := m.streams[m.turn]
		c, ok, err := s.Poll()
		if err != nil {
			m.streams = append(m.streams[:m.turn], m.streams[m.turn+1:]...)
		} else {
			m.turn++
		}
		if ok || err != nil && err != io.EOF {
			return s, c, err
		}
	}
	return nil, Chunk{}, nil
}
