package main

import (
	"encoding/json"
	"os"
	"slices"
	"time"
)

// figure is one number that a scenario came to.
type figure struct {
	Name    string  `json:"name"`
	Unit    string  `json:"unit"`
	Value   float64 `json:"value"`              // the median of the rounds
	AtMost  float64 `json:"at_most,omitempty"`  // the bar; 0 = none
	AtLeast float64 `json:"at_least,omitempty"` // likewise

	Rounds []float64 `json:"rounds,omitempty"` // what each of several came to
}

func (f figure) missed() bool { return f.AtMost > 0 && f.Value > f.AtMost || f.Value < f.AtLeast }

// figures are those of one run, in the order in which they are shown.
type figures struct {
	list   []figure
	lates  map[string]*hist // for the plot, by name
	curves []curvePoint     // for the plots of growth
}

func (fs *figures) add(name, unit string, value float64) {
	fs.list = append(fs.list, figure{Name: name, Unit: unit, Value: value})
}

// bar adds a figure that must not be above atMost.
func (fs *figures) bar(name, unit string, value, atMost float64) {
	fs.list = append(fs.list, figure{Name: name, Unit: unit, Value: value, AtMost: atMost})
}

// atLeast adds a figure that must not be below bar.
func (fs *figures) atLeast(name, unit string, value, bar float64) {
	fs.list = append(fs.list, figure{Name: name, Unit: unit, Value: value, AtLeast: bar})
}

// spread adds median, 99th percentile and maximum of h in milliseconds; a bar other than 0 is the median's.
func (fs *figures) spread(name string, h *hist, medianAtMost float64) {
	fs.bar(name+" p50", "ms", milliseconds(h.quantile(0.5)), medianAtMost)
	fs.add(name+" p99", "ms", milliseconds(h.quantile(0.99)))
	fs.add(name+" max", "ms", milliseconds(h.most))
}

// join adds another round. A figure that only some rounds have is the median of those.
func (fs *figures) join(round figures) {
	fs.lates, fs.curves = round.lates, round.curves
	if fs.list == nil {
		fs.list = round.list
		for i := range fs.list {
			fs.list[i].Rounds = []float64{fs.list[i].Value}
		}
		return
	}
	for _, f := range round.list {
		at := slices.IndexFunc(fs.list, func(own figure) bool { return own.Name == f.Name })
		if at < 0 {
			f.Rounds = []float64{f.Value}
			fs.list = append(fs.list, f)
			continue
		}
		fs.list[at].enter(f.Value)
	}
}

func (f *figure) enter(value float64) {
	f.Rounds = append(f.Rounds, value)
	sorted := slices.Sorted(slices.Values(f.Rounds))
	middle := len(sorted) / 2
	f.Value = sorted[middle]
	if len(sorted)%2 == 0 {
		f.Value = (sorted[middle-1] + sorted[middle]) / 2
	}
}

func (fs *figures) find(name string) (figure, bool) {
	for _, f := range fs.list {
		if f.Name == name {
			return f, true
		}
	}
	return figure{}, false
}

// MarshalJSON writes the list.
func (fs figures) MarshalJSON() ([]byte, error) { return json.Marshal(fs.list) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// perSecond is a rate; 0 where no time went by.
func perSecond(n uint64, d time.Duration) float64 { return ratio(float64(n), d.Seconds()) }

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// report is a whole run of bench.
type report struct {
	Machine   machine    `json:"machine"`
	Scenarios []measured `json:"scenarios"`
}

// measured is one scenario with all engines.
type measured struct {
	Name        string      `json:"name"`
	About       string      `json:"about"`
	LoadAverage float64     `json:"load_average"` // of the machine, one minute's, when the runs began
	Others      float64     `json:"others"`       // processors that were busy meanwhile with what bench didn't start; -1 = not known
	Runs        []engineRun `json:"runs"`         // the engine's, then its peers'
}

// engineRun is one scenario with one engine.
type engineRun struct {
	Engine  string  `json:"engine"`
	Figures figures `json:"figures"`
	Error   string  `json:"error,omitempty"`
	err     error
}

// rival makes what vLLM's server came to the bar of a figure of the first, if both have it.
func (m *measured) rival(name string) {
	own := m.Runs[0].Figures.list
	at := slices.IndexFunc(own, func(f figure) bool { return f.Name == name })
	for _, r := range m.Runs[1:] {
		if theirs, ok := r.Figures.find(name); ok && at >= 0 && r.Engine == rivalName {
			own[at].AtMost = theirs.Value
		}
	}
}

func (m *measured) errors() []error {
	var errs []error
	for _, r := range m.Runs {
		errs = append(errs, r.err)
	}
	return errs
}

// missed tells whether the engine, not one of its peers, missed a bar.
func (r *report) missed() bool {
	for _, m := range r.Scenarios {
		for _, f := range m.Runs[0].Figures.list {
			if f.missed() {
				return true
			}
		}
	}
	return false
}

func (r *report) writeJSON(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
