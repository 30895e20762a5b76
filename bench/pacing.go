package main

import (
	"context"
	"time"
)

// pacingBar is the median lateness that is allowed, in milliseconds.
const pacingBar = 0.3

// measurePacing times requests that were sent within the window, to their ends.
func measurePacing(ctx context.Context, t target, window time.Duration) (figures, error) {
	var fs figures
	s := shape{engines: 1, slots: 512, tokens: 128, ttft: 100 * time.Millisecond, itl: 20 * time.Millisecond}
	s.over = s.ttft + time.Duration(s.tokens-1)*s.itl
	l := newLoad(s)
	r, err := build(ctx, t, setup{engines: 1, seqs: s.slots, ttft: s.ttft, itl: s.itl}, l.events())
	if err != nil {
		return fs, err
	}
	defer r.close()
	if err := l.start(ctx, r.frontend.Client(0)); err != nil {
		return fs, err
	}
	w, err := l.observe(ctx, r, window)
	if err != nil {
		return fs, err
	}
	if err := l.stop(ctx, s.over+10*time.Second); err != nil {
		return fs, err
	}
	late := &l.lanes[0].late
	fs.lates = map[string]*hist{"first tokens": &late.engineFirst, "later tokens": &late.engineLater}
	fs.spread("first token late", &late.first, pacingBar)
	fs.spread("later token late", &late.later, pacingBar)
	fs.add("earliest token late", "ms", milliseconds(min(late.first.least, late.later.least)))
	if late.engineFirst.n > 0 {
		fs.spread("first token late by the engine", &late.engineFirst, 0)
		fs.spread("later token late by the engine", &late.engineLater, 0)
		fs.add("earliest token late by the engine", "ms", milliseconds(min(late.engineFirst.least, late.engineLater.least)))
	}
	fs.spread("gap off", &late.gap, 0)
	fs.rates(w)
	return fs, nil
}
