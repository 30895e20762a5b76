package main

import (
	"math"
	"math/bits"
	"time"
)

// hist counts durations in buckets that are exact below 128 ns and 1/64 of their value wide above. It takes negative ones
// as well, never allocates, and its zero value is empty.
type hist struct {
	above, below [buckets]uint64 // of values from 0 up, and of the magnitude of negative ones
	n            uint64
	least, most  time.Duration
}

const (
	subBits = 6 // 64 buckets for each doubling
	buckets = (64 - subBits) << subBits
)

func bucketOf(v uint64) int {
	shift := bits.Len64(v) - subBits - 1
	if shift <= 0 {
		return int(v)
	}
	return shift<<subBits + int(v>>shift)
}

// middle is the value that stands for a bucket.
func middle(bucket int) time.Duration {
	shift := bucket>>subBits - 1
	if shift <= 0 {
		return time.Duration(bucket)
	}
	low := uint64(bucket-shift<<subBits) << shift
	return time.Duration(low + 1<<shift/2)
}

func (h *hist) add(d time.Duration) {
	if h.n == 0 || d < h.least {
		h.least = d
	}
	if h.n == 0 || d > h.most {
		h.most = d
	}
	h.n++
	if d < 0 {
		h.below[bucketOf(uint64(-d))]++
		return
	}
	h.above[bucketOf(uint64(d))]++
}

// merge adds what another has counted.
func (h *hist) merge(o *hist) {
	if o.n == 0 {
		return
	}
	if h.n == 0 || o.least < h.least {
		h.least = o.least
	}
	if h.n == 0 || o.most > h.most {
		h.most = o.most
	}
	h.n += o.n
	for i := range h.above {
		h.above[i] += o.above[i]
		h.below[i] += o.below[i]
	}
}

// quantile is the value that a share q of all is not above, from 0 (the least) to 1 (the most); 0 for an empty hist.
func (h *hist) quantile(q float64) time.Duration {
	rank := uint64(math.Ceil(q * float64(h.n)))
	found := h.most
	h.each(func(d time.Duration, upTo uint64) bool {
		found = d
		return upTo < rank
	})
	return min(max(found, h.least), h.most)
}

// each goes through the buckets that hold something, from the least value up, with the number of values up to and in each.
// It ends when yield returns false.
func (h *hist) each(yield func(d time.Duration, upTo uint64) bool) {
	var sum uint64
	for i := len(h.below) - 1; i >= 0; i-- {
		if sum += h.below[i]; h.below[i] > 0 && !yield(-middle(i), sum) {
			return
		}
	}
	for i := range h.above {
		if sum += h.above[i]; h.above[i] > 0 && !yield(middle(i), sum) {
			return
		}
	}
}
