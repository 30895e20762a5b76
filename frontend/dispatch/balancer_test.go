package dispatch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBalancer_Choose(t *testing.T) {
	for name, c := range map[string]struct {
		loads  []load
		except []int
		want   []int // of consecutive choices, until none
	}{
		"idle ones take turns":              {loads: []load{{up: true}, {up: true}, {up: true}}, want: []int{0, 1, 2, 0, 1, 2}},
		"waiting counts four times":         {loads: []load{{up: true, waiting: 1}, {up: true, running: 3}}, want: []int{1, 0}},
		"running alone":                     {loads: []load{{up: true, running: 5}, {up: true, running: 4}}, want: []int{1, 0}},
		"what was sent waits":               {loads: []load{{up: true, running: 9}, {up: true}}, want: []int{1, 1, 1, 0}},
		"open ones unknown to the stats":    {loads: []load{{up: true, open: 2}, {up: true, waiting: 1}}, want: []int{1, 0}},
		"open ones known to the stats":      {loads: []load{{up: true, open: 2, running: 2}, {up: true, running: 3}}, want: []int{0, 1}},
		"dead ones are passed by":           {loads: []load{{}, {up: true, waiting: 50}, {}}, want: []int{1, 1}},
		"failed ones are passed by":         {loads: []load{{up: true}, {up: true, waiting: 50}}, except: []int{0}, want: []int{1}},
		"none lives":                        {loads: []load{{}, {}}},
		"all failed":                        {loads: []load{{up: true}}, except: []int{0}},
		"a dead one's load is of no weight": {loads: []load{{}, {up: true, running: 1}}, want: []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			b := balancer{loads: c.loads}
			var got []int
			for range max(1, len(c.want)) {
				if rank, ok := b.choose(c.except); ok {
					got = append(got, rank)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("choices (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBalancer_Report(t *testing.T) {
	b := balancer{loads: make([]load, 2)}
	b.set(0, true)
	b.set(1, true)
	for range 4 {
		b.choose(nil)
	}
	b.opened(1)
	b.report(0, 3, 7)
	want := []load{{up: true, waiting: 3, running: 7}, {up: true, sent: 2, open: 1}}
	if diff := cmp.Diff(want, b.snapshot(), cmp.AllowUnexported(load{})); diff != "" {
		t.Errorf("loads (-want +got):\n%s", diff)
	}
	b.ended(1)
	b.set(0, false)
	want = []load{{}, {up: true, sent: 2}}
	if diff := cmp.Diff(want, b.snapshot(), cmp.AllowUnexported(load{})); diff != "" {
		t.Errorf("loads (-want +got):\n%s", diff)
	}
}
