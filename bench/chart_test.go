package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every curve becomes a chart, with a line for each engine, in the file of what grows.
func TestReport_WriteCharts(t *testing.T) {
	var engine, peer figures
	for _, n := range []int{1, 10, 100} {
		engine.point("running", n, "CPU <", "%", float64(n)/2)
		engine.point("engines", n, "late", "ms", 0)
		peer.point("running", n, "CPU <", "%", float64(n))
	}
	r := report{Scenarios: []measured{{Runs: []engineRun{{Engine: "engine", Figures: engine}, {Engine: "peer", Figures: peer}}}}}
	paths, err := r.writeCharts(filepath.Join(t.TempDir(), "out"))
	if err != nil || len(paths) != 2 {
		t.Fatalf("paths = %v, %v, want those of engines and of running", paths, err)
	}
	for i, lines := range []int{1, 2} {
		b, err := os.ReadFile(paths[i])
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(b), "stroke-width"); got != lines {
			t.Errorf("%s: %d lines, want %d", paths[i], got, lines)
		}
		for d := xml.NewDecoder(strings.NewReader(string(b))); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v\n%s", paths[i], err, b)
			}
		}
	}
}

func TestAxisOf(t *testing.T) {
	cases := []struct {
		values []float64
		want   axis
	}{
		{[]float64{2, 30}, axis{1, 100}},
		{[]float64{0.02, 0, -1}, axis{0.01, 0.1}},
		{[]float64{10}, axis{10, 100}},
		{[]float64{0}, axis{1, 10}},
		{nil, axis{1, 10}},
	}
	for _, c := range cases {
		if got := axisOf(c.values); got != c.want {
			t.Errorf("axisOf(%v) = %v, want %v", c.values, got, c.want)
		}
	}
	if a := (axis{1, 100}); a.share(10) != 0.5 || a.share(0) != 0 || a.share(1000) != 1 {
		t.Errorf("shares of 10, 0 and 1000 = %v, %v, %v, want 0.5, 0, 1", a.share(10), a.share(0), a.share(1000))
	}
}
