package main

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata")

// example is a scenario with an engine that misses a bar, a peer that has other figures, and one that failed.
func example() measured {
	var engine, peer figures
	engine.bar("quick", "ms", 0.25, 0.3)
	engine.bar("slow", "ms", 7, 0.3)
	engine.add("tokens", "/s", 8_780_000)
	engine.atLeast("many", "/s", 738_001, 738_000)
	engine.atLeast("few", "/s", 737_000, 738_000)
	engine.add("requests", "/s", 68_600)
	engine.add("alone", "", 193.4)
	peer.bar("quick", "ms", 0.5, 0.3)
	peer.add("tokens", "/s", 439_000)
	peer.add("requests", "/s", 0)
	peer.bar("theirs", "MB", 14.71, 25)
	return measured{Name: "example", About: "made up", LoadAverage: 1.25, Others: 0.5, Runs: []engineRun{
		{Engine: "engine", Figures: engine},
		{Engine: "peer", Figures: peer},
		{Engine: "third", Error: "it fell over"},
	}}
}

func TestPrintMeasured(t *testing.T) {
	var out strings.Builder
	printMeasured(&out, example())
	file := filepath.Join("testdata", "table.txt")
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// TestReport_Missed: a peer may miss what it likes.
func TestReport_Missed(t *testing.T) {
	m := example()
	if r := (report{Scenarios: []measured{m}}); !r.missed() {
		t.Error("missed = false, want true")
	}
	m.Runs = m.Runs[1:2]
	m.Runs = append([]engineRun{{Engine: "engine"}}, m.Runs...)
	if r := (report{Scenarios: []measured{m}}); r.missed() {
		t.Error("missed = true for a peer, want false")
	}
}

// TestMeasured_Rival: what vLLM's server came to is the bar, and what another peer came to is not.
func TestMeasured_Rival(t *testing.T) {
	m := example()
	m.rival("requests")
	m.Runs[1].Engine = rivalName
	for _, name := range []string{"tokens", "alone", "theirs"} { // of both, of the engine, of the peer
		m.rival(name)
	}
	for name, want := range map[string]float64{"tokens": 439_000, "alone": 0, "requests": 0} {
		f, _ := m.Runs[0].Figures.find(name)
		if f.AtMost != want || f.missed() != (want > 0) {
			t.Errorf("%s: bar = %v, missed = %v, want %v, which is missed if it is there", name, f.AtMost, f.missed(), want)
		}
	}
}

func TestReport_WritePlot(t *testing.T) {
	var h hist
	for i := range 1000 {
		h.add(time.Duration(i-10) * time.Microsecond)
	}
	m := example()
	m.Runs[0].Engine = "<engine>"
	m.Runs[0].Figures.lates = map[string]*hist{"first tokens": &h, "later tokens": {}}
	r := report{Scenarios: []measured{example(), m}}
	path, err := r.writePlot(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for d := xml.NewDecoder(strings.NewReader(string(b))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("plot: %v\n%s", err, b)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "path" && strings.Contains(string(b), plotColours[0]) {
			lines++
		}
	}
	if lines < 20 || !strings.Contains(string(b), "&lt;engine&gt;") || strings.Count(string(b), "stroke-width") != 1 {
		t.Errorf("plot of %d paths, want the axes and one distribution:\n%s", lines, b)
	}
}

func TestReport_WritePlot_Nothing(t *testing.T) {
	r := report{Scenarios: []measured{example()}}
	if path, err := r.writePlot(t.TempDir()); path != "" || err != nil {
		t.Errorf("plot = %q, %v, want none", path, err)
	}
}
