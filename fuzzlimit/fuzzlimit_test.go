package fuzzlimit

import (
	"testing"
	"time"
)

// complaints counts what Watch finds.
type complaints struct {
	testing.TB
	n int
}

func (c *complaints) Helper()               {}
func (c *complaints) Errorf(string, ...any) { c.n++ }

var sink []byte

func TestWatch(t *testing.T) {
	tests := []struct {
		name string
		size int
		cost func()
		want int
	}{
		{"nothing", 0, func() {}, 0},
		{"memory for few bytes", 10, func() { sink = make([]byte, 2*baseBytes) }, 1},
		{"memory for many bytes", 1 << 20, func() { sink = make([]byte, 2*baseBytes) }, 0},
		{"time for few bytes", 10, func() { spin(2 * baseTime) }, 1},
		{"time for many bytes", 32 << 10, func() { spin(2 * baseTime) }, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &complaints{}
			done := Watch(c, tt.size)
			tt.cost()
			done()
			if c.n != tt.want {
				t.Errorf("%d complaints, want %d", c.n, tt.want)
			}
		})
	}
}

// spin has the thread run for so long.
func spin(d time.Duration) {
	for start := cpuTime(); cpuTime()-start < d; {
		continue
	}
}
