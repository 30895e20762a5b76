package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// printMeasured prints a scenario as a table: a line for each figure, a column for each engine, the ratio to the first
// peer, and the bar.
func printMeasured(w io.Writer, m measured) {
	fmt.Fprintf(w, "\n%s: %s (%s)\n", m.Name, m.About, m.quietness())
	head := []string{"figure", "unit"}
	for _, r := range m.Runs {
		head = append(head, r.Engine)
	}
	if len(m.Runs) > 1 {
		head = append(head, "ratio")
	}
	rows := [][]string{append(head, "bar", "")}
	for _, f := range m.names() {
		rows = append(rows, m.row(f))
	}
	printRows(w, rows)
	for _, r := range m.Runs {
		if r.Error != "" {
			fmt.Fprintf(w, "  %s: %s\n", r.Engine, r.Error)
		}
	}
}

// quietness tells what else the machine did.
func (m *measured) quietness() string {
	if m.Others < 0 {
		return fmt.Sprintf("load average %.1f", m.LoadAverage)
	}
	return fmt.Sprintf("load average %.1f before, other processes used %.2f CPUs meanwhile", m.LoadAverage, m.Others)
}

// text is the figure, and from where to where it went in several rounds.
func (f figure) text() string {
	if len(f.Rounds) < 2 {
		return number(f.Value)
	}
	return fmt.Sprintf("%s (%s–%s)", number(f.Value), number(slices.Min(f.Rounds)), number(slices.Max(f.Rounds)))
}

// names are the figures of all engines, without their values.
func (m *measured) names() []figure {
	var all figures
	for _, r := range m.Runs {
		for _, f := range r.Figures.list {
			if _, ok := all.find(f.Name); !ok {
				all.list = append(all.list, f)
			}
		}
	}
	return all.list
}

func (m *measured) row(f figure) []string {
	row := []string{f.Name, f.Unit}
	var values []float64
	for _, r := range m.Runs {
		own, ok := r.Figures.find(f.Name)
		if !ok {
			row = append(row, "-")
			continue
		}
		row = append(row, own.text())
		values = append(values, own.Value)
	}
	if len(m.Runs) > 1 {
		row = append(row, ratioText(values))
	}
	switch {
	case f.AtMost > 0:
		return append(row, "≤ "+number(f.AtMost), m.verdict(f))
	case f.AtLeast > 0:
		return append(row, "≥ "+number(f.AtLeast), m.verdict(f))
	}
	return append(row, "", "")
}

// verdict is about the engine, not its peers.
func (m *measured) verdict(f figure) string {
	own, ok := m.Runs[0].Figures.find(f.Name)
	switch {
	case !ok:
		return "-"
	case own.missed():
		return "MISS"
	}
	return "PASS"
}

// ratioText is the engine's value over the first peer's.
func ratioText(values []float64) string {
	if len(values) < 2 || values[1] == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", values[0]/values[1])
}

// number writes three or four digits that matter.
func number(v float64) string {
	switch {
	case v == float64(int64(v)) && v < 1e4 && v > -1e4:
		return strconv.FormatInt(int64(v), 10)
	case v > -0.0005 && v < 0.0005:
		return "0.000"
	case v >= 1e6:
		return fmt.Sprintf("%.2f M", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.1f k", v/1e3)
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// printRows aligns columns; the first two to the left, the others to the right.
func printRows(w io.Writer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			gap := strings.Repeat(" ", widths[i]-len([]rune(cell)))
			if i < 2 {
				line.WriteString("  " + cell + gap)
				continue
			}
			line.WriteString("  " + gap + cell)
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}
