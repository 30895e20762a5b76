package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The plot has a panel for first and one for later tokens. In each a line for every engine shows which share of the tokens
// was at most so late, by the engine's own timestamps, over a logarithmic axis.
const (
	panelWidth, panelHeight = 420, 260
	plotMargin              = 50
	plotFrom, plotTo        = 0.001, 100.0 // ms; what is earlier or later lies on the edge
)

var plotColours = []string{"#1b6ca8", "#d1495b", "#66a182", "#edae49", "#5f4b8b"}

// writePlot draws into folder. The path is "" if nothing was measured that could be drawn.
func (r *report) writePlot(folder string) (string, error) {
	for _, m := range r.Scenarios {
		if m.hasLates() {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return "", err
			}
			path := filepath.Join(folder, "lateness.svg")
			return path, os.WriteFile(path, []byte(m.svg()), 0o644)
		}
	}
	return "", nil
}

func (m *measured) hasLates() bool {
	for _, r := range m.Runs {
		if r.Figures.lates != nil {
			return true
		}
	}
	return false
}

func (m *measured) svg() string {
	var b strings.Builder
	width := 2*(panelWidth+plotMargin) + plotMargin
	height := panelHeight + 2*plotMargin + 18*len(m.Runs)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	for i, panel := range []string{"first tokens", "later tokens"} {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", plotMargin+i*(panelWidth+plotMargin), plotMargin)
		drawAxes(&b, panel)
		for k, r := range m.Runs {
			drawLine(&b, r.Figures.lates[panel], plotColours[k%len(plotColours)])
		}
		b.WriteString("</g>\n")
	}
	for k, r := range m.Runs {
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", plotMargin, panelHeight+2*plotMargin+18*k, plotColours[k%len(plotColours)], escape.Replace(r.Engine))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func drawAxes(b *strings.Builder, title string) {
	fmt.Fprintf(b, `<text y="-12">share of %s at most so late, in ms</text>`+"\n", title)
	fmt.Fprintf(b, `<rect width="%d" height="%d" fill="none" stroke="#888"/>`+"\n", panelWidth, panelHeight)
	for ms := plotFrom; ms <= plotTo; ms *= 10 {
		x := plotX(ms)
		fmt.Fprintf(b, `<path d="M%.1f 0V%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle">%g</text>`+"\n", x, panelHeight, x, panelHeight+16, ms)
	}
	for share := 0; share <= 100; share += 25 {
		y := panelHeight * (100 - share) / 100
		fmt.Fprintf(b, `<path d="M0 %dH%d" stroke="#ddd"/><text x="-6" y="%d" text-anchor="end">%d%%</text>`+"\n", y, panelWidth, y+4, share)
	}
}

// drawLine draws one distribution; nothing for an empty one.
func drawLine(b *strings.Builder, h *hist, colour string) {
	if h == nil || h.n == 0 {
		return
	}
	fmt.Fprintf(b, `<path fill="none" stroke="%s" stroke-width="1.5" d="M0 %d`, colour, panelHeight)
	last := -1.0
	h.each(func(d time.Duration, upTo uint64) bool {
		x, y := plotX(milliseconds(d)), panelHeight*(1-float64(upTo)/float64(h.n))
		if x > last+0.5 || upTo == h.n { // no finer than the eye
			fmt.Fprintf(b, "L%.1f %.1f", x, y)
			last = x
		}
		return true
	})
	b.WriteString("\"/>\n")
}

func plotX(ms float64) float64 {
	ms = min(max(ms, plotFrom), plotTo)
	return panelWidth * math.Log(ms/plotFrom) / math.Log(plotTo/plotFrom)
}
