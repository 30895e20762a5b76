package main

import (
	"context"
	"fmt"
	"time"
)

// What grows.
var (
	growingRequests = []int{1, 3, 10, 30, 100, 300, 1000, 3000, 10_000}
	growingEngines  = []int{1, 2, 4, 8, 16, 32, 64}
)

// leastGrowth is how long each step of growth is watched at least: longer than a request lasts, so that some begin in it.
const leastGrowth = 3 * time.Second

// perEngine is how many requests run on each of a growing number of engines.
const perEngine = 32

// measureGrowth watches an engine whose requests become more, and then engines that become more.
func measureGrowth(ctx context.Context, t target, d time.Duration) (figures, error) {
	var fs figures
	window := max(d/time.Duration(len(growingRequests)+len(growingEngines)), leastGrowth)
	for _, n := range growingRequests {
		s := pacedShape(n, 100*time.Millisecond, 20*time.Millisecond)
		if err := fs.growth(ctx, t, s, window, "running", n); err != nil {
			return fs, fmt.Errorf("%d running: %w", n, err)
		}
	}
	for _, n := range growingEngines {
		s := pacedShape(perEngine, 100*time.Millisecond, 20*time.Millisecond)
		s.engines = n
		if err := fs.growth(ctx, t, s, window, "engines", n); err != nil {
			return fs, fmt.Errorf("%d engines: %w", n, err)
		}
	}
	return fs, nil
}

// growth adds a point to each curve of what grows.
func (fs *figures) growth(ctx context.Context, t target, s shape, d time.Duration, what string, n int) error {
	w, lanes, err := pace(ctx, t, s, d)
	if err != nil {
		return err
	}
	var late hist
	for _, a := range lanes {
		late.merge(&a.late.engineLater)
	}
	fs.point(what, n, "tokens per second, share of what is due", "", ratio(w.tokensPerSecond(), s.fullRate()))
	fs.point(what, n, "engines' CPU", "%", 100*ratio(w.engineCPU.Seconds(), w.took.Seconds()))
	fs.point(what, n, "engines' CPU per million tokens", "s", w.perMillion(w.engineCPU))
	fs.point(what, n, "messages", "/s", perSecond(w.totals.messages, w.took))
	fs.point(what, n, "largest worker resident", "MB", w.resident)
	fs.point(what, n, "later token late p50", "ms", milliseconds(late.quantile(0.5)))
	fs.point(what, n, "later token late p99", "ms", milliseconds(late.quantile(0.99)))
	return nil
}

// point adds a figure that is a point of a curve as well.
func (fs *figures) point(what string, n int, name, unit string, value float64) {
	fs.add(fmt.Sprintf("%d %s: %s", n, what, name), unit, value)
	if unit != "" {
		name += ", " + unit
	}
	fs.curves = append(fs.curves, curvePoint{of: what, name: name, x: float64(n), y: value})
}
