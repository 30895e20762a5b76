package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Bars of servers.
const (
	streamedBar = 3 * 246_000 // tokens per second, on two processors
	addedBar    = 1           // ms that a front end adds to the median time to first token
	streamsBar  = 300         // MB of all processes
	residentBar = 200         // MB of all processes, with 512 streams
	serveBar    = 2           // CPU-seconds of all processes per million tokens
)

// frontEndCost is the figure in which a server has to be no worse than vLLM's.
const frontEndCost = "front end CPU per million tokens"

// measureHTTP asks a server for all it can.
func measureHTTP(ctx context.Context, v server, d time.Duration) (figures, error) {
	var fs figures
	s := shape{engines: 1, slots: 512, tokens: 128}
	w, l, err := drive(ctx, v, s, d)
	if err != nil {
		return fs, err
	}
	fs.bar("all processes' CPU per million tokens", "s", w.perMillion(w.all), serveBar)
	fs.add(frontEndCost, "s", w.perMillion(w.frontEnd))
	fs.atLeast("streamed tokens", "/s", w.tokensPerSecond(), streamedBar)
	fs.bar("all processes resident", "MB", w.resident, residentBar)
	fs.spread("first token after", &l.first, 0)
	w.rates(&fs)
	s.prompt = longPrompt
	long, _, err := drive(ctx, v, s, d)
	if err != nil {
		return fs, fmt.Errorf("long prompts: %w", err)
	}
	name := fmt.Sprintf("%d-token prompts: ", longPrompt)
	fs.bar(name+"all processes' CPU per million tokens", "s", long.perMillion(long.all), serveBar)
	fs.add(name+"streamed tokens", "/s", long.tokensPerSecond())
	fs.atLeast(name+"share of the short ones' tokens", "", ratio(long.tokensPerSecond(), w.tokensPerSecond()), promptBar)
	return fs, nil
}

// measureHTTPPaced compares when tokens come with when the engines send them, as a client of the engines sees it.
func measureHTTPPaced(ctx context.Context, v server, d time.Duration) (figures, error) {
	var fs figures
	s := pacedShape(256, 100*time.Millisecond, 20*time.Millisecond)
	w, l, err := drive(ctx, v, s, d)
	if err != nil {
		return fs, err
	}
	if len(v.alone.command) > 0 {
		bare, err := bareLateness(ctx, v.alone, s, d)
		if err != nil {
			return fs, fmt.Errorf("the engines alone: %w", err)
		}
		added := func(h, bare *hist, q float64) float64 { return milliseconds(h.quantile(q) - bare.quantile(q)) }
		fs.bar("added to the first token p50", "ms", added(&l.first, &bare.first, 0.5), addedBar)
		fs.add("added to the first token p99", "ms", added(&l.first, &bare.first, 0.99))
		fs.add("added to later tokens p50", "ms", added(&l.later, &bare.later, 0.5))
		fs.add("added to later tokens p99", "ms", added(&l.later, &bare.later, 0.99))
	}
	fs.spread("first token late", &l.first, 0)
	fs.spread("later token late", &l.later, 0)
	fs.add(frontEndCost, "s", w.perMillion(w.frontEnd))
	w.rates(&fs)
	return fs, nil
}

// measureHTTPStreams holds very many streams open.
func measureHTTPStreams(ctx context.Context, v server, d time.Duration) (figures, error) {
	var fs figures
	s := pacedShape(1000, 100*time.Millisecond, 50*time.Millisecond)
	s.engines, s.slots = 2, 2000
	w, l, err := drive(ctx, v, s, d)
	if err != nil {
		return fs, err
	}
	fs.bar("all processes resident", "MB", w.resident, streamsBar)
	fs.add(frontEndCost, "s", w.perMillion(w.frontEnd))
	fs.spread("first token late", &l.first, 0)
	fs.spread("later token late", &l.later, 0)
	w.rates(&fs)
	return fs, nil
}

// pacedShape is one engine with streams whose beginnings are spread over their length.
func pacedShape(slots int, ttft, itl time.Duration) shape {
	s := shape{engines: 1, slots: slots, tokens: 128, ttft: ttft, itl: itl}
	s.over = ttft + time.Duration(s.tokens-1)*itl
	return s
}

// drive runs a load on a server of its own, and watches it for a while.
func drive(ctx context.Context, v server, s shape, d time.Duration) (httpWindow, *httpLoad, error) {
	h, err := v.open(ctx, setup{engines: s.engines, seqs: s.slots, ttft: s.ttft, itl: s.itl})
	if err != nil {
		return httpWindow{}, nil, err
	}
	defer h.close()
	l, err := newHTTPLoad(ctx, h, s)
	if err != nil {
		return httpWindow{}, nil, err
	}
	defer l.close()
	w, err := l.run(h, d)
	if err != nil {
		err = errors.Join(err, h.endedSoon())
	}
	return w, l, err
}

// run is a load from its beginning to its end.
func (l *httpLoad) run(h *host, d time.Duration) (httpWindow, error) {
	if err := l.start(); err != nil {
		return httpWindow{}, err
	}
	if err := l.wait(warmUp); err != nil {
		return httpWindow{}, err
	}
	w, err := l.observe(h, d)
	if err != nil {
		return w, err
	}
	return w, l.stop(l.shape.over + 10*time.Second)
}

// bareLateness is what a client of the engines sees of the same load.
func bareLateness(ctx context.Context, t target, s shape, d time.Duration) (*lateness, error) {
	_, lanes, err := pace(ctx, t, s, d)
	if err != nil {
		return nil, err
	}
	return &lanes[0].late, nil
}
