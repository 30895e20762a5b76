package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// controlBar is for the 99th percentile of a call under a paced load, in milliseconds.
const controlBar = 50

// betweenCalls keeps the calls from being a load themselves.
const betweenCalls = 5 * time.Millisecond

// controlCall is one call of the control API.
type controlCall struct{ name, method, path, body string }

// controlCalls change nothing: the patch sets what is set.
var controlCalls = []controlCall{
	{"GET /config", http.MethodGet, "/config", ""},
	{"PATCH /config", http.MethodPatch, "/config", `{"log_requests": false}`},
	{"GET /stats", http.MethodGet, "/stats", ""},
}

// measureControl times calls under a paced load, and again while every engine runs as fast as it can.
func measureControl(ctx context.Context, t target, d time.Duration) (figures, error) {
	var fs figures
	if !t.controllable() {
		return fs, errors.New("the command has neither {flags} nor {control}")
	}
	paced := shape{engines: 3, slots: 128, tokens: 128, ttft: 100 * time.Millisecond, itl: 20 * time.Millisecond}
	if err := fs.control(ctx, t, paced, d/2, "paced", controlBar); err != nil {
		return fs, fmt.Errorf("paced: %w", err)
	}
	if err := fs.control(ctx, t, shape{engines: 3, slots: 128, tokens: 128}, d/2, "saturated", 0); err != nil {
		return fs, fmt.Errorf("saturated: %w", err)
	}
	return fs, nil
}

// control adds the figures of all calls under one load.
func (fs *figures) control(ctx context.Context, t target, s shape, d time.Duration, name string, bar float64) error {
	address, err := freePort()
	if err != nil {
		return err
	}
	l := newLoad(s)
	r, err := build(ctx, t, setup{engines: s.engines, seqs: s.slots, ttft: s.ttft, itl: s.itl, control: address}, l.events())
	if err != nil {
		return err
	}
	defer r.close()
	if err := l.start(ctx, r.frontend.Client(0)); err != nil {
		return err
	}
	if err := l.wait(ctx, warmUp); err != nil {
		return err
	}
	start, began := l.totals(), time.Now()
	times, err := timeCalls(ctx, l, "http://"+r.control, d)
	if err != nil {
		return errors.Join(err, r.engine.ended())
	}
	tokens := perSecond(l.totals().since(start).tokens, time.Since(began))
	for i, c := range controlCalls {
		label := name + " " + c.name
		fs.add(label+" p50", "ms", milliseconds(times[i].quantile(0.5)))
		fs.bar(label+" p99", "ms", milliseconds(times[i].quantile(0.99)), bar)
		fs.add(label+" max", "ms", milliseconds(times[i].most))
	}
	fs.add(name+" output tokens meanwhile", "/s", tokens)
	return l.stop(ctx, 20*time.Second)
}

// timeCalls makes the calls in turn, over one connection, while the load runs.
func timeCalls(ctx context.Context, l *load, base string, d time.Duration) ([]hist, error) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	times := make([]hist, len(controlCalls))
	for end := time.Now().Add(d); time.Now().Before(end); {
		for i, c := range controlCalls {
			start := time.Now()
			if err := c.do(ctx, client, base); err != nil {
				return nil, err
			}
			times[i].add(time.Since(start))
			if err := l.wait(ctx, betweenCalls); err != nil {
				return nil, err
			}
		}
	}
	return times, nil
}

// do makes a call and reads the whole answer, which must be a success.
func (c controlCall) do(ctx context.Context, client *http.Client, base string) error {
	q, err := http.NewRequestWithContext(ctx, c.method, base+c.path, strings.NewReader(c.body))
	if err != nil {
		return err
	}
	if c.body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	a, err := client.Do(q)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	body, err := io.ReadAll(io.LimitReader(a.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d: %.200s", c.name, a.StatusCode, body)
	}
	return nil
}
