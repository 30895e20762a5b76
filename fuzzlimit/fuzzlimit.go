// Package fuzzlimit fails a fuzz target whose input of a few bytes costs a lot of time or memory. Only tests import it.
package fuzzlimit

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// What an input may cost: so much whatever its size, and so much more for each KiB of it.
const (
	baseTime  = 500 * time.Millisecond // a collection of garbage, and code that coverage and the race detector slow down
	timePerKB = 100 * time.Millisecond
	baseBytes = 16 << 20
	bytesPerB = 16 << 10
)

// Watch measures from its call until the function it returns is called, which fails t where an input of size bytes has cost too much CPU time of
// its goroutine or too much memory of the process. To be called at the start of a fuzz function: defer fuzzlimit.Watch(t, len(b))().
func Watch(t testing.TB, size int) func() {
	runtime.LockOSThread()
	start, allocated := cpuTime(), heapAllocs()
	return func() {
		t.Helper()
		spent, took := cpuTime()-start, heapAllocs()-allocated
		runtime.UnlockOSThread()
		if most := baseTime + timePerKB*time.Duration(size)/1024; spent > most {
			t.Errorf("%d bytes took %v, want at most %v", size, spent, most)
		}
		if most := baseBytes + bytesPerB*uint64(size); took > most {
			t.Errorf("%d bytes took %d bytes of memory, want at most %d", size, took, most)
		}
	}
}

// heapAllocs is what the process has allocated so far, in bytes.
func heapAllocs() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
