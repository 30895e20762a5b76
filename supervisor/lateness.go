package supervisor

import (
	"time"

	"vllm-vcr/ipc"
)

// Lateness tells how late the outputs of an engine left that had to wait for their time. What the simulation delays is not
// late; nor is what a slow reader holds up.
type Lateness struct {
	Outputs uint64  `json:"outputs"` // since the supervisor's start
	Seconds float64 `json:"seconds"` // their lateness together
	// P50 and P99 are the bounds below which half of the outputs and 99 % of them were late, in ms; 0 where there are none, and
	// -1 where it was more than the last bound.
	P50     float64      `json:"p50_ms"`
	P99     float64      `json:"p99_ms"`
	Buckets []LateBucket `json:"buckets"`
}

// LateBucket counts the outputs that were late by more than the bucket before it says, and not more than this one.
type LateBucket struct {
	AtMost  float64 `json:"at_most_ms"` // -1 in the last, which has no bound
	Outputs uint64  `json:"outputs"`
}

func newLateness(s ipc.Strain) Lateness {
	l := Lateness{Seconds: s.LateSum.Seconds()}
	for i, n := range s.Late {
		bound := -1.0
		if i < len(ipc.LateBounds) {
			bound = float64(ipc.LateBounds[i]) / float64(time.Millisecond)
		}
		l.Outputs += n
		l.Buckets = append(l.Buckets, LateBucket{AtMost: bound, Outputs: n})
	}
	l.P50, l.P99 = l.bound(0.5), l.bound(0.99)
	return l
}

// bound is the least bound that a share of the outputs keeps.
func (l Lateness) bound(share float64) float64 {
	var sum uint64
	for _, b := range l.Buckets {
		if sum += b.Outputs; l.Outputs > 0 && float64(sum) >= share*float64(l.Outputs) {
			return b.AtMost
		}
	}
	return 0
}
