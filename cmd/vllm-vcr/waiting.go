package main

import (
	"context"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/logs"
	"vllm-vcr/supervisor"
)

// waitingReports are the pauses between the lines about engines that have not joined yet.
var waitingReports = []time.Duration{2 * time.Second, 8 * time.Second, 20 * time.Second, 30 * time.Second, 60 * time.Second, 180 * time.Second}

// sayWaiting logs now and then how many engines have joined, as long as some are on their first way to the frontend, and then
// waits for the end of ctx.
func sayWaiting(ctx context.Context, health func(context.Context) supervisor.Health, cfg config.Config, log *logs.Logger) {
	defer func() { <-ctx.Done() }()
	for _, pause := range waitingReports {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		h := health(ctx)
		if h.Status != supervisor.HealthStarting {
			return
		}
		log.Info().Str("address", cfg.HandshakeAddress).
			Uint64("ready", cfg.EngineCount-uint64(len(h.Engines))).Uint64("engines", cfg.EngineCount).
			Msg("waiting for the frontend")
	}
}
