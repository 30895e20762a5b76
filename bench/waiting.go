package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"vllm-vcr/frontend/engineclient"
)

const (
	waitingRequests = 1_000_000
	waitingBar      = 1024 // bytes of each
)

// measureWaiting has an engine take a million requests of which one runs, for longer than anybody looks.
func measureWaiting(ctx context.Context, t target, _ time.Duration) (figures, error) {
	var fs figures
	if !t.controllable() {
		return fs, errors.New("the command has neither {flags} nor {control}")
	}
	address, err := freePort()
	if err != nil {
		return fs, err
	}
	r, err := build(ctx, t, setup{engines: 1, seqs: 1, ttft: time.Hour, control: address}, engineclient.Events{})
	if err != nil {
		return fs, err
	}
	defer r.close()
	before, err := largestWorker(r)
	if err != nil {
		return fs, err
	}
	start := time.Now()
	if err := fill(ctx, r); err != nil {
		return fs, errors.Join(err, r.engine.ended())
	}
	took := time.Since(start)
	after, err := largestWorker(r)
	if err != nil {
		return fs, err
	}
	fs.bar("memory of each", "B", (after-before)*1e6/waitingRequests, waitingBar)
	fs.add("taken", "/s", perSecond(waitingRequests, took))
	fs.add("worker resident", "MB", after)
	return fs, nil
}

func largestWorker(r *rig) (float64, error) {
	u, err := readUsage(r.engine.pid())
	if err != nil {
		return 0, err
	}
	return slices.Max(u.megabytes()[u.workers():]), nil
}

// fill sends the requests and waits until the engine has them all.
func fill(ctx context.Context, r *rig) error {
	q := newRequest(shortPrompt, 128)
	const batch = 10_000
	for n := 0; n < waitingRequests; n += batch {
		for slot := n; slot < n+batch; slot++ {
			if err := r.frontend.Client(0).AddEncoded(0, q.number(slot, 1)); err != nil {
				return err
			}
		}
		if err := awaitReceived(ctx, r.control, n+batch); err != nil {
			return err
		}
	}
	return nil
}

// awaitReceived asks for the stats until that many requests have reached the engine.
func awaitReceived(ctx context.Context, address string, n int) error {
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	for {
		answer, err := fetch(ctx, client, http.MethodGet, "http://"+address+"/stats", "")
		if err != nil {
			return err
		}
		var stats struct {
			Received int `json:"requests_received"`
		}
		if err := json.Unmarshal(answer, &stats); err != nil || stats.Received >= n {
			return err
		}
		if err := pause(ctx, betweenCalls); err != nil {
			return err
		}
	}
}
