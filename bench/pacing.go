package main

import (
	"context"
	"fmt"
	"time"
)

// Bars of lateness by the engine's own account, in milliseconds.
const (
	firstMedianBar, firstTailBar = 0.2, 1
	laterMedianBar, laterTailBar = 0.1, 1
	fastTailBar                  = 5 // at an ITL of 1 ms
)

// measurePacing times requests that were sent within the window, to their ends.
func measurePacing(ctx context.Context, t target, d time.Duration) (figures, error) {
	var fs figures
	bare, err := bareTimer(ctx, d/4)
	if err != nil {
		return fs, err
	}
	w, lanes, err := pace(ctx, t, pacedShape(512, 100*time.Millisecond, 20*time.Millisecond), d)
	if err != nil {
		return fs, err
	}
	late := &lanes[0].late
	fs.lates = map[string]*hist{"first tokens": &late.engineFirst, "later tokens": &late.engineLater}
	if late.engineFirst.n > 0 {
		fs.tail("first token late by the engine", &late.engineFirst, firstMedianBar, firstTailBar)
		fs.tail("later token late by the engine", &late.engineLater, laterMedianBar, laterTailBar)
		fs.add("earliest token late by the engine", "ms", milliseconds(min(late.engineFirst.least, late.engineLater.least)))
	}
	fs.spread("first token late", &late.first, 0)
	fs.spread("later token late", &late.later, 0)
	fs.add("earliest token late", "ms", milliseconds(min(late.first.least, late.later.least)))
	fs.spread("bare timerfd late", bare, 0)
	fs.spread("gap off", &late.gap, 0)
	fs.rates(w)
	return fs, nil
}

// measureFast paces many requests so fast that a token falls due every two microseconds, and oftener.
func measureFast(ctx context.Context, t target, d time.Duration) (figures, error) {
	var fs figures
	bare, err := bareTimer(ctx, d/4)
	if err != nil {
		return fs, err
	}
	for _, running := range []int{512, 2048} {
		s := pacedShape(running, time.Millisecond, time.Millisecond)
		w, lanes, err := pace(ctx, t, s, d)
		if err != nil {
			return fs, fmt.Errorf("%d running: %w", running, err)
		}
		late := &lanes[0].late
		name := fmt.Sprintf("%d running: ", running)
		h := &late.engineLater
		if h.n == 0 {
			h = &late.later
		}
		fs.atLeast(name+"share of the full rate", "", ratio(w.tokensPerSecond(), s.fullRate()), 0.97)
		fs.add(name+"tokens", "/s", w.tokensPerSecond())
		fs.tail(name+"later token late", h, 0, fastTailBar)
		fs.add(name+"p99 over a bare timerfd's", "", ratio(float64(h.quantile(0.99)), float64(bare.quantile(0.99))))
		fs.add(name+"messages", "/s", perSecond(w.totals.messages, w.took))
		fs.add(name+"outputs per message", "", w.outputsPerMessage())
		fs.add(name+"engine CPU", "%", 100*ratio(w.engineCPU.Seconds(), w.took.Seconds()))
		fs.add(name+"bench's own CPU", "%", 100*ratio(w.benchCPU.Seconds(), w.took.Seconds()))
	}
	fs.spread("bare timerfd late", bare, 0)
	return fs, nil
}

// fullRate is how many tokens the engines send in a second if nothing is late.
func (s shape) fullRate() float64 {
	length := s.ttft + time.Duration(s.tokens-1)*s.itl
	return float64(s.engines*s.slots*s.tokens) / length.Seconds()
}

// tail is spread with a bar on the 99th percentile as well; 0 = none.
func (fs *figures) tail(name string, h *hist, medianAtMost, tailAtMost float64) {
	fs.bar(name+" p50", "ms", milliseconds(h.quantile(0.5)), medianAtMost)
	fs.bar(name+" p99", "ms", milliseconds(h.quantile(0.99)), tailAtMost)
	fs.add(name+" max", "ms", milliseconds(h.most))
}

// pace runs a paced load, whose requests begin spread as the shape says, to its end. The lanes, one for each engine, tell how late
// its tokens were.
func pace(ctx context.Context, t target, s shape, d time.Duration) (window, []*lane, error) {
	l := newLoad(s)
	r, err := build(ctx, t, setup{engines: s.engines, seqs: s.slots, ttft: s.ttft, itl: s.itl}, l.events())
	if err != nil {
		return window{}, nil, err
	}
	defer r.close()
	if err := l.start(ctx, r.frontend.Client(0)); err != nil {
		return window{}, nil, err
	}
	w, err := l.observe(ctx, r, d)
	if err != nil {
		return window{}, nil, err
	}
	return w, l.lanes, l.stop(ctx, s.over+10*time.Second)
}
