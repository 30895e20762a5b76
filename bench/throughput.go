package main

import (
	"context"
	"fmt"
	"time"
)

// Bars of throughput, for one engine.
const (
	costBar   = 0.2       // CPU-seconds per million tokens, with many running
	manyBar   = 4_000_000 // tokens per second, with many running
	aloneBar  = 300_000   // tokens per second, with one running
	promptBar = 2.0 / 3   // share of the tokens per second that is left with long prompts
)

// warmUp is how long a load runs before it is watched.
const warmUp = 500 * time.Millisecond

// sizes are how many requests run at once; with those that are marked long prompts are tried as well.
var sizes = []struct {
	running int
	long    bool
	tokens  float64 // bar
	cost    float64 // bar, 0 = none
}{
	{running: 1, tokens: aloneBar},
	{running: 64, long: true},
	{running: 512, long: true, tokens: manyBar, cost: costBar},
	{running: 2048, tokens: manyBar, cost: costBar},
}

// measureThroughput asks an engine for all it can, with few and with many requests at once.
func measureThroughput(ctx context.Context, t target, d time.Duration) (figures, error) {
	var fs figures
	for _, size := range sizes {
		s := shape{engines: 1, slots: size.running, tokens: 128}
		name := fmt.Sprintf("%d running: ", size.running)
		w, err := saturate(ctx, t, s, d)
		if err != nil {
			return fs, fmt.Errorf("%s%w", name, err)
		}
		fs.atLeast(name+"tokens", "/s", w.tokensPerSecond(), size.tokens)
		fs.bar(name+"engine CPU per million tokens", "s", w.perMillion(w.engineCPU), size.cost)
		fs.add(name+"outputs per message", "", w.outputsPerMessage())
		if !size.long {
			continue
		}
		s.prompt = longPrompt
		long, err := saturate(ctx, t, s, d)
		if err != nil {
			return fs, fmt.Errorf("%slong prompts: %w", name, err)
		}
		name += fmt.Sprintf("%d-token prompts: ", longPrompt)
		fs.add(name+"tokens", "/s", long.tokensPerSecond())
		fs.atLeast(name+"share of the short ones' tokens", "", ratio(long.tokensPerSecond(), w.tokensPerSecond()), promptBar)
		fs.add(name+"engine CPU per million tokens", "s", long.perMillion(long.engineCPU))
	}
	return fs, nil
}

// measureTransport has one engine send all it can, and then a bare pair of sockets send messages of the same size.
func measureTransport(ctx context.Context, t target, d time.Duration) (figures, error) {
	var fs figures
	w, err := saturate(ctx, t, shape{engines: 1, slots: 512, tokens: 128}, d)
	if err != nil {
		return fs, err
	}
	fs.rates(w)
	bare, err := measureCeiling(ctx, max(1, int(w.totals.bytes/w.totals.messages)), d)
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

// fleetSize is how many engines a fleet has here.
const fleetSize = 8

// measureFleet compares the cost of a token in one of several engines with that in one that is alone.
func measureFleet(ctx context.Context, t target, d time.Duration) (figures, error) {
	var fs figures
	one, err := saturate(ctx, t, shape{engines: 1, slots: 512, tokens: 128}, d)
	if err != nil {
		return fs, fmt.Errorf("one: %w", err)
	}
	all, err := saturate(ctx, t, shape{engines: fleetSize, slots: 512, tokens: 128}, d)
	if err != nil {
		return fs, fmt.Errorf("%d: %w", fleetSize, err)
	}
	fs.add("tokens of all", "/s", all.tokensPerSecond())
	fs.add("engine CPU per million tokens", "s", all.perMillion(all.engineCPU))
	fs.bar("that of one engine alone, times", "", ratio(all.perMillion(all.engineCPU), one.perMillion(one.engineCPU)), 1)
	fs.add("outputs per message", "", all.outputsPerMessage())
	fs.add("engine CPU", "%", 100*ratio(all.engineCPU.Seconds(), all.took.Seconds()))
	fs.add("worker resident", "MB", all.resident)
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
	return w, l.stop(ctx, 20*time.Second)
}
