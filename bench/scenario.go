package main

import (
	"context"
	"regexp"
	"strings"
	"time"
)

// scenario is one way of using an engine. Its run starts the engine, measures for about the given time, and stops it.
type scenario struct {
	name  string
	about string
	run   func(ctx context.Context, t target, window time.Duration) (figures, error)
}

// scenarios are all of them, in the order in which they run: the quiet ones first.
var scenarios = []scenario{
	{"idle", "1 engine that joined and has nothing to do", measureIdle},
	{"ready", "8 engines, from the frontend's handshake to the last READY; 5 starts each", measureReady},
	{"pacing", "1 engine, TTFT 100 ms, ITL 20 ms, 512 running, spread arrivals, 128 tokens each", measurePacing},
	{"throughput", "1 engine, zero latency, 512 running, 128 tokens each", measureThroughput},
	{"control", "3 engines, control calls one at a time while each runs 128 requests", measureControl},
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
