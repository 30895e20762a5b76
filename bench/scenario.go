package main

import (
	"context"
	"regexp"
	"slices"
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
	limit bool   // the engine that does no more than it must is measured beside it
	once  bool   // takes the whole time in one round
	named bool   // runs only where -run was given
}

// scenarios are all of them, in the order in which they run: the quiet ones first.
var scenarios = []scenario{
	{name: "idle", run: measureIdle, once: true, about: "1 engine that joined and has nothing to do"},
	{name: "ready", run: measureReady, about: "8 engines, from the frontend's handshake to the last READY"},
	{name: "throughput", run: measureThroughput, limit: true, about: "1 engine, zero latency, prompts of 32 tokens, 128 tokens each"},
	{name: "transport", run: measureTransport, about: "1 engine, zero latency, 512 running, beside bare sockets"},
	{name: "fleet", run: measureFleet, limit: true, about: "8 engines, zero latency, 512 running on each, 128 tokens each"},
	{name: "pacing", run: measurePacing, about: "1 engine, TTFT 100 ms, ITL 20 ms, 512 running, spread arrivals, 128 tokens each"},
	{name: "fast", run: measureFast, about: "1 engine, TTFT 1 ms, ITL 1 ms, spread arrivals, 128 tokens each"},
	{name: "control", run: measureControl, about: "8 engines, control calls one at a time, idle and at zero latency with 512 running on each"},
	{name: "growth", run: measureGrowth, once: true, named: true, about: "TTFT 100 ms, ITL 20 ms; 1 to 10,000 running on 1 engine, then 32 running on each of 1 to 64 engines"},
	{name: "waiting", run: measureWaiting, once: true, named: true, about: "1 engine with a million requests that wait, with prompts of 32 tokens"},
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
			list = append(list, trial{v.name, func(ctx context.Context) (figures, error) { return s.serve(ctx, v, o.window(s)) }})
		}
		return list
	}
	targets := o.targets
	if limit, ok := limitTarget(); ok && s.limit {
		targets = slices.Insert(slices.Clone(targets), 1, limit)
	}
	for _, t := range targets {
		list = append(list, trial{t.name, func(ctx context.Context) (figures, error) { return s.run(ctx, t, o.window(s)) }})
	}
	return list
}

// roundsOf is how often a scenario is measured.
func (o *options) roundsOf(s scenario) int {
	if s.once {
		return 1
	}
	return o.rounds
}

// window is how long each round of a scenario is measured.
func (o *options) window(s scenario) time.Duration { return o.duration / time.Duration(o.roundsOf(s)) }

func scenarioNames() string {
	names := make([]string, len(scenarios))
	for i, s := range scenarios {
		names[i] = s.name
	}
	return strings.Join(names, ", ")
}

// matching are the scenarios whose names match; without a pattern, those that run unasked.
func matching(re *regexp.Regexp) []scenario {
	var found []scenario
	for _, s := range scenarios {
		if re == nil && !s.named || re != nil && re.MatchString(s.name) {
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
