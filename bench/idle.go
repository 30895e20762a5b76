package main

import (
	"context"
	"slices"
	"time"

	"vllm-vcr/frontend/engineclient"
)

// How long an engine is left alone before it is looked at: for a moment, or until the last timer of its start has gone.
const (
	settling  = time.Second
	fullQuiet = 8 * time.Second
)

// measureIdle watches an engine that nobody asks anything.
func measureIdle(ctx context.Context, t target, window time.Duration) (figures, error) {
	var fs figures
	r, err := build(ctx, t, setup{engines: 1, seqs: 128}, engineclient.Events{})
	if err != nil {
		return fs, err
	}
	defer r.close()
	if err := pause(ctx, fullQuiet); err != nil {
		return fs, err
	}
	before, err := readUsage(r.engine.pid())
	if err != nil {
		return fs, err
	}
	if err := pause(ctx, window); err != nil {
		return fs, err
	}
	after, err := readUsage(r.engine.pid())
	if err != nil {
		return fs, err
	}
	percent := func(cpu time.Duration) float64 { return 100 * ratio(cpu.Seconds(), after.at.Sub(before.at).Seconds()) }
	worker := after.workers()
	fs.bar("worker resident", "MB", slices.Max(after.megabytes()[worker:]), 20)
	fs.bar("worker CPU", "%", percent(after.cpu[worker]-before.cpu[worker]), 0.1)
	fs.bar("worker wake-ups", "/s", perSecond(after.switches[worker]-before.switches[worker], after.at.Sub(before.at)), 1)
	fs.add("all processes resident", "MB", sum(after.megabytes()))
	fs.add("all processes CPU", "%", percent(after.cpuSince(before)))
	return fs, nil
}

func (u usage) megabytes() []float64 {
	mb := make([]float64, len(u.resident))
	for i, b := range u.resident {
		mb[i] = float64(b) / 1e6
	}
	return mb
}

func sum(values []float64) float64 {
	var s float64
	for _, v := range values {
		s += v
	}
	return s
}
