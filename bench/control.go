package main

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// betweenCalls keeps the calls from being a load themselves.
const betweenCalls = 5 * time.Millisecond

// controlCall is one call of the control API, with its bars in milliseconds; 0 = none.
type controlCall struct {
	name, method, path, body string
	median, tail             float64 // while all engines are busy
	idle                     float64 // median while they have nothing to do
}

// controlCalls change nothing: the patch sets what is set.
var controlCalls = []controlCall{
	{name: "GET /config", method: http.MethodGet, path: "/config", idle: 1},
	{name: "PATCH /config", method: http.MethodPatch, path: "/config", body: `{"log_requests": false}`, median: 50, tail: 125, idle: 1},
	{name: "GET /stats", method: http.MethodGet, path: "/stats", median: 25, tail: 75, idle: 1},
}

// measureControl times calls to engines that have nothing to do, and to engines that run as fast as they can. The floor is
// what a ping of as many processes costs that are just as busy, or idle; a change takes two, one after the other.
func measureControl(ctx context.Context, t target, d time.Duration) (figures, error) {
	var fs figures
	if !t.controllable() {
		return fs, errors.New("the command has neither {flags} nor {control}")
	}
	for _, load := range []string{idleArg, busyArg} {
		if err := fs.control(ctx, t, load == busyArg, d); err != nil {
			return fs, err
		}
		bare, err := floor(ctx, fleetSize, load, d/2)
		if err != nil {
			return fs, err
		}
		fs.spread(load+": bare ping of as many processes", bare, 0)
	}
	return fs, nil
}

// control adds the figures of all calls, with a load or without.
func (fs *figures) control(ctx context.Context, t target, busy bool, d time.Duration) error {
	address, err := freePort()
	if err != nil {
		return err
	}
	l := newLoad(shape{engines: fleetSize, slots: 512, tokens: 128})
	r, err := build(ctx, t, setup{engines: fleetSize, seqs: 512, control: address}, l.events())
	if err != nil {
		return err
	}
	defer r.close()
	if busy {
		if err := l.start(ctx, r.frontend.Client(0)); err != nil {
			return err
		}
	}
	if err := l.wait(ctx, warmUp); err != nil {
		return err
	}
	start, began := l.totals(), time.Now()
	times, err := probe(ctx, l, "http://"+r.control, d)
	if err != nil {
		return errors.Join(err, r.engine.ended())
	}
	tokens := perSecond(l.totals().since(start).tokens, time.Since(began))
	for i, c := range controlCalls {
		if !busy {
			fs.spread("idle: "+c.name, &times[i], c.idle)
			continue
		}
		fs.tail("busy: "+c.name, &times[i], c.median, c.tail)
	}
	if !busy {
		return nil
	}
	fs.add("busy: output tokens meanwhile", "/s", tokens)
	return l.stop(ctx, 20*time.Second)
}
