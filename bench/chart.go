package main

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// curvePoint is a point of one of the curves over what grows.
type curvePoint struct {
	of   string // what grows
	name string // what is shown, with its unit
	x, y float64
}

// chart draws the curves of one name, a line for each engine, over logarithmic axes.
type chart struct {
	title  string
	x      string // what grows
	series []series
}

type series struct {
	name   string
	points []curvePoint
}

// writeCharts draws a file for each thing that grows, with a chart for each curve over it, and returns where.
func (r *report) writeCharts(folder string) ([]string, error) {
	charts := map[string][]chart{}
	for _, m := range r.Scenarios {
		for _, run := range m.Runs {
			for _, p := range run.Figures.curves {
				charts[p.of] = enter(charts[p.of], run.Engine, p)
			}
		}
	}
	var paths []string
	for _, of := range slices.Sorted(maps.Keys(charts)) {
		path := filepath.Join(folder, "growth-"+of+".svg")
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return paths, err
		}
		if err := os.WriteFile(path, []byte(chartsSVG(charts[of])), 0o644); err != nil {
			return paths, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// enter puts a point where it belongs.
func enter(charts []chart, engine string, p curvePoint) []chart {
	at := slices.IndexFunc(charts, func(c chart) bool { return c.title == p.name })
	if at < 0 {
		at = len(charts)
		charts = append(charts, chart{title: p.name, x: p.of})
	}
	c := &charts[at]
	line := slices.IndexFunc(c.series, func(s series) bool { return s.name == engine })
	if line < 0 {
		line = len(c.series)
		c.series = append(c.series, series{name: engine})
	}
	c.series[line].points = append(c.series[line].points, p)
	return charts
}

// chartsSVG puts charts into two columns.
func chartsSVG(charts []chart) string {
	const columns = 2
	rows := (len(charts) + columns - 1) / columns
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		columns*(panelWidth+2*plotMargin), rows*(panelHeight+2*plotMargin))
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	for i, c := range charts {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n",
			i%columns*(panelWidth+2*plotMargin)+plotMargin, i/columns*(panelHeight+2*plotMargin)+plotMargin)
		c.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (c *chart) draw(b *strings.Builder) {
	x, y := c.axes()
	fmt.Fprintf(b, `<text y="-12">%s, over %s</text><rect width="%d" height="%d" fill="none" stroke="#888"/>`+"\n",
		escape.Replace(c.title), escape.Replace(c.x), panelWidth, panelHeight)
	for v := x.from; v <= x.to*1.001; v *= 10 {
		at := panelWidth * x.share(v)
		fmt.Fprintf(b, `<path d="M%.1f 0V%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle">%g</text>`+"\n", at, panelHeight, at, panelHeight+16, v)
	}
	for v := y.from; v <= y.to*1.001; v *= 10 {
		at := panelHeight * (1 - y.share(v))
		fmt.Fprintf(b, `<path d="M0 %.1fH%d" stroke="#ddd"/><text x="-6" y="%.1f" text-anchor="end">%.4g</text>`+"\n", at, panelWidth, at+4, v)
	}
	for i, s := range c.series {
		colour := plotColours[i%len(plotColours)]
		fmt.Fprintf(b, `<path fill="none" stroke="%s" stroke-width="1.5" d="`, colour)
		for k, p := range s.points {
			fmt.Fprintf(b, "%c%.1f %.1f", "ML"[min(k, 1)], panelWidth*x.share(p.x), panelHeight*(1-y.share(p.y)))
		}
		fmt.Fprintf(b, `"/><text x="8" y="%d" fill="%s">%s</text>`+"\n", 16+15*i, colour, escape.Replace(s.name))
	}
}

// axis is a logarithmic one between two powers of ten.
type axis struct{ from, to float64 }

// share is where a value lies, from 0 to 1.
func (a axis) share(v float64) float64 {
	v = min(max(v, a.from), a.to)
	return math.Log(v/a.from) / math.Log(a.to/a.from)
}

// axes hold every point; what is 0 or less lies on the edge.
func (c *chart) axes() (x, y axis) {
	var xs, ys []float64
	for _, s := range c.series {
		for _, p := range s.points {
			xs, ys = append(xs, p.x), append(ys, p.y)
		}
	}
	return axisOf(xs), axisOf(ys)
}

func axisOf(values []float64) axis {
	least, most := math.Inf(1), 0.0
	for _, v := range values {
		if v > 0 {
			least, most = min(least, v), max(most, v)
		}
	}
	if most == 0 {
		return axis{1, 10}
	}
	a := axis{math.Pow(10, math.Floor(math.Log10(least))), math.Pow(10, math.Ceil(math.Log10(most)))}
	if a.to <= a.from {
		a.to = 10 * a.from
	}
	return a
}
