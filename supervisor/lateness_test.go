package supervisor

import (
	"testing"
	"time"

	"vllm-vcr/ipc"
)

func TestNewLateness(t *testing.T) {
	ms := time.Millisecond
	cases := []struct {
		name     string
		late     map[time.Duration]uint64
		outputs  uint64
		p50, p99 float64
	}{
		{"none", nil, 0, 0, 0},
		{"on time", map[time.Duration]uint64{0: 5}, 5, 0.1, 0.1},
		{"a bound is in its bucket", map[time.Duration]uint64{ms: 1}, 1, 1, 1},
		{"one in a hundred", map[time.Duration]uint64{50 * time.Microsecond: 99, 3 * ms: 1}, 100, 0.1, 0.1},
		{"two in a hundred", map[time.Duration]uint64{50 * time.Microsecond: 98, 3 * ms: 2}, 100, 0.1, 5},
		{"beyond the last bound", map[time.Duration]uint64{time.Minute: 3}, 3, -1, -1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			page, file, err := ipc.NewPage()
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			defer page.Close()
			var sum time.Duration
			for d, n := range c.late {
				page.AddLate(d, n)
				sum += d * time.Duration(n)
			}
			got := newLateness(page.Strain())
			if got.Outputs != c.outputs || got.P50 != c.p50 || got.P99 != c.p99 || got.Seconds != sum.Seconds() {
				t.Errorf("lateness = %+v, want %d outputs, %v s, p50 %v, p99 %v", got, c.outputs, sum.Seconds(), c.p50, c.p99)
			}
		})
	}
}
