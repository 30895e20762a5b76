package main

import (
	"context"
	"regexp"
	"strings"
	"time"
)

// scenario is one way of using an engine, by run, or a server, by serve. It starts what it measures for about the given time, and
// stops it.
type scenario struct {
	name  string
	about string
	run   func(ctx context.Context, t target, window time.Duration) (figures, error)
	serve func(ctx context.Context, v server, window time.Duration) (figures, error)
	rival string // the figure in which the first must be no worse than vLLM's; "" = none
}

// scenarios are all of them, in the order in which they run: the quiet ones first.
var scenarios = []scenario{
	{name: "idle", run: measureIdle, about: "1 engine that joined and has nothing to do"},
	{name: "ready", run: measureReady, about: "8 engines, from the frontend's handshake to the last READY; 5 starts each"},
	{name: "pacing", run: measurePacing, about: "1 engine, TTFT 100 ms, ITL 20 ms, 512 running, spread arrivals, 128 tokens each"},
	{name: "throughput", run: measureThroughput, about: "1 engine, zero latency, 512 running, 128 tokens each"},
	{name: "control", run: measureControl, about: "3 engines, control calls one at a time while each runs 128 requests"},
	{name: "http", serve: measureHTTP, rival: frontEndCost, about: "streamed chats, 1 engine, zero latency, 512 at once, 128 tokens each"},
	{name: "http-paced", serve: measureHTTPPaced, about: "streamed chats, 1 engine, TTFT 100 ms, ITL 20 ms, 256 at once, 128 tokens each"},
	{name: "http-streams", serve: measureHTTPStreams, about: "streamed chats, 2 engines, TTFT 100 ms, ITL 50 ms, 2000 at once, 128 tokens each"},
}

// trial is one scenario with one engine or server.
type trial struct {
	name string
	run  func(ctx context.Context) (figures, error)
}

// trials are those of a scenario, that of the engine or server that is judged first.
func (o *options) trials(s scenario) []trial {
	var list []trial
	if s.serve != nil {
		for _, v := range o.servers {
			list = append(list, trial{v.name, func(ctx context.Context) (figures, error) { return s.serve(ctx, v, o.duration) }})
		}
		return list
	}
	for _, t := range o.targets {
		list = append(list, trial{t.name, func(ctx context.Context) (figures, error) { return s.run(ctx, t, o.duration) }})
	}
	return list
}

func scenarioNames() string {
	names := make([]string, len(scenarios))
	for i, s := range scenarios {
		names[i] = s.name
	}
	return strings.Join(names, ", ")
}

func matching(re *regexp.Regexp) []scenario {
	var found []scenario
	for _, s := range scenarios {
		if re.MatchString(s.name) {
			found = append(found, s)
		}
	}
	return found
}

// pause waits, or returns why ctx ended before.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
