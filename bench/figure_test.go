package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Rounds come together as their median, and the table shows from where to where they went.
func TestFigures_Join(t *testing.T) {
	var fs figures
	for _, value := range []float64{3, 1, 2, 10} {
		var round figures
		round.bar("late", "ms", value, 5)
		if value == 2 {
			round.add("seldom", "", 7)
		}
		fs.join(round)
	}
	want := []figure{
		{Name: "late", Unit: "ms", Value: 2.5, AtMost: 5, Rounds: []float64{3, 1, 2, 10}},
		{Name: "seldom", Value: 7, Rounds: []float64{7}},
	}
	if diff := cmp.Diff(want, fs.list); diff != "" {
		t.Errorf("figures of four rounds (-want +got):\n%s", diff)
	}
	if got, want := fs.list[0].text(), "2.500 (1–10)"; got != want {
		t.Errorf("text = %q, want %q", got, want)
	}
	if got, want := fs.list[1].text(), "7"; got != want {
		t.Errorf("text = %q, want %q", got, want)
	}
}
