package main

import (
	"math"
	"testing"
	"time"
)

func TestHist_Buckets(t *testing.T) {
	last := -1
	for _, v := range []uint64{0, 1, 63, 64, 127, 128, 129, 130, 255, 256, 1 << 20, 1<<20 + 1<<14, 1 << 40, math.MaxInt64} {
		b := bucketOf(v)
		if b < last || b >= buckets {
			t.Errorf("bucket of %d = %d, want %d to %d", v, b, last, buckets-1)
		}
		last = b
		if off := math.Abs(float64(middle(b)) - float64(v)); off > float64(v)/64 {
			t.Errorf("bucket of %d stands for %d, want it within 1/64", v, middle(b))
		}
	}
}

func TestHist_Quantile(t *testing.T) {
	var h hist
	for i := -100; i < 900; i++ {
		h.add(time.Duration(i) * time.Microsecond)
	}
	cases := []struct {
		q    float64
		want time.Duration
	}{{0, -100 * time.Microsecond}, {0.05, -51 * time.Microsecond}, {0.5, 399 * time.Microsecond}, {0.99, 889 * time.Microsecond}, {1, 899 * time.Microsecond}}
	for _, c := range cases {
		if got := h.quantile(c.q); (got - c.want).Abs() > c.want.Abs()/64+time.Microsecond {
			t.Errorf("quantile(%v) = %v, want %v", c.q, got, c.want)
		}
	}
	if h.least != -100*time.Microsecond || h.most != 899*time.Microsecond || h.n != 1000 {
		t.Errorf("least, most, n = %v, %v, %d, want -100µs, 899µs, 1000", h.least, h.most, h.n)
	}
}

func TestHist_Empty(t *testing.T) {
	var h hist
	if got := h.quantile(0.5); got != 0 {
		t.Errorf("median of nothing = %v, want 0", got)
	}
}

// TestHist_Single: what lies in one bucket is bounded by the least and the most.
func TestHist_Single(t *testing.T) {
	var h hist
	h.add(1_000_003)
	for _, q := range []float64{0, 0.5, 1} {
		if got := h.quantile(q); got != 1_000_003 {
			t.Errorf("quantile(%v) = %v, want the only value", q, got)
		}
	}
}

func TestHist_AddDoesNotAllocate(t *testing.T) {
	var h hist
	if n := testing.AllocsPerRun(100, func() { h.add(time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations for each value, want 0", n)
	}
}
