package main

import (
	"context"
	"time"
)

// throughputBar is in CPU-seconds per million tokens.
const throughputBar = 0.5

// warmUp is how long a load runs before it is watched.
const warmUp = time.Second

// measureThroughput asks an engine for all it can, and then a bare pair of sockets for the same bytes.
func measureThroughput(ctx context.Context, t target, d time.Duration) (figures, error) {
	var fs figures
	s := shape{engines: 1, slots: 512, tokens: 128}
	w, err := saturate(ctx, t, s, d)
	if err != nil {
		return fs, err
	}
	fs.bar("engine CPU per million tokens", "s", w.perMillion(w.engineCPU), throughputBar)
	fs.rates(w)
	bytes := max(1, int(w.totals.bytes/w.totals.messages))
	bare, err := measureCeiling(ctx, bytes, d/5)
	if err != nil {
		return fs, err
	}
	tokens := ratio(float64(w.totals.tokens), float64(w.totals.messages))
	fs.add("bare PUSH to PULL, same messages", "/s", bare.messages)
	fs.add("bare PUSH to PULL, as tokens", "/s", bare.messages*tokens)
	fs.add("bare, both ends' CPU per million tokens", "s", ratio(bare.cpuPerMessage*1e6, tokens))
	fs.add("share of the bare messages", "%", 100*ratio(perSecond(w.totals.messages, w.took), bare.messages))
	return fs, nil
}

// saturate runs a load that nothing slows down.
func saturate(ctx context.Context, t target, s shape, d time.Duration) (window, error) {
	l := newLoad(s)
	r, err := build(ctx, t, setup{engines: s.engines, seqs: s.slots}, l.events())
	if err != nil {
		return window{}, err
	}
	defer r.close()
	if err := l.start(ctx, r.frontend.Client(0)); err != nil {
		return window{}, err
	}
	if err := l.wait(ctx, warmUp); err != nil {
		return window{}, err
	}
	w, err := l.observe(ctx, r, d)
	if err != nil {
		return window{}, err
	}
	return w, l.stop(ctx, 10*time.Second)
}
