package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vllm-vcr/frontend/engineclient"
)

// readyBar is in milliseconds.
const readyBar = 150

// measureReady starts engines before and after the frontend that they look for.
func measureReady(ctx context.Context, t target, _ time.Duration) (figures, error) {
	var fs figures
	for _, c := range []struct {
		name string
		try  func(context.Context, target) (time.Duration, error)
	}{
		{"command started after", readyAfter},
		{"command started before", readyBefore},
	} {
		took, err := c.try(ctx, t)
		if err != nil {
			return fs, fmt.Errorf("%s: %w", c.name, err)
		}
		fs.bar(c.name, "ms", milliseconds(took), readyBar)
	}
	return fs, nil
}

// readyAfter has the handshake address up first. The time includes the start of all processes.
func readyAfter(ctx context.Context, t target) (time.Duration, error) {
	start := time.Now()
	r, err := build(ctx, t, setup{engines: fleetSize, seqs: 128}, engineclient.Events{})
	if err != nil {
		return 0, err
	}
	took := time.Since(start)
	r.close()
	return took, nil
}

// readyBefore lets the engines look for the address in vain for a while, so that their patience shows.
func readyBefore(ctx context.Context, t target) (time.Duration, error) {
	port, err := freePort()
	if err != nil {
		return 0, err
	}
	address := "tcp://" + port
	engine, err := startProcess(t.argv(setup{engines: fleetSize, seqs: 128}, address))
	if err != nil {
		return 0, err
	}
	if err := pause(ctx, settling); err != nil {
		engine.stop()
		return 0, err
	}
	start := time.Now()
	f, err := engineclient.Listen(engineclient.Options{Handshake: address, Engines: fleetSize})
	if err != nil {
		engine.stop()
		return 0, errors.Join(err, engine.ended())
	}
	r := &rig{frontend: f, engine: engine}
	defer r.close()
	if err := r.ready(ctx); err != nil {
		return 0, err
	}
	return time.Since(start), nil
}
