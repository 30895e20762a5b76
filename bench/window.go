package main

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"
)

// window is what passed while a load was watched.
type window struct {
	took      time.Duration
	totals    totals
	engineCPU time.Duration // of the whole engine command
	benchCPU  time.Duration // of this process
	resident  float64       // the largest worker's at the end, in MB
}

// observe lets the load run for a while, times the requests that are sent meanwhile, and reads what the engine used.
func (l *load) observe(ctx context.Context, r *rig, d time.Duration) (window, error) {
	before, err := readUsage(r.engine.pid())
	if err != nil {
		return window{}, errors.Join(err, r.engine.ended())
	}
	start, own := l.totals(), ownCPU()
	l.measuring.Store(true)
	err = l.wait(ctx, d)
	l.measuring.Store(false)
	if err != nil {
		return window{}, errors.Join(err, r.engine.ended())
	}
	w := window{totals: l.totals().since(start), benchCPU: ownCPU() - own}
	after, err := readUsage(r.engine.pid())
	if err != nil {
		return window{}, errors.Join(err, r.engine.ended())
	}
	if w.totals.tokens == 0 {
		return window{}, errNothing
	}
	w.took = after.at.Sub(before.at)
	w.engineCPU = after.cpuSince(before)
	w.resident = slices.Max(after.megabytes()[after.workers():])
	return w, nil
}

// ownCPU is what this process has run so far.
func ownCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it can't fail for oneself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// perMillion is CPU-seconds per million tokens.
func (w window) perMillion(cpu time.Duration) float64 {
	return ratio(cpu.Seconds(), float64(w.totals.tokens)/1e6)
}

func (w window) tokensPerSecond() float64 { return perSecond(w.totals.tokens, w.took) }

func (w window) outputsPerMessage() float64 {
	return ratio(float64(w.totals.outputs), float64(w.totals.messages))
}

// rates adds what every load has.
func (fs *figures) rates(w window) {
	fs.add("requests", "/s", perSecond(w.totals.requests, w.took))
	fs.add("output tokens", "/s", w.tokensPerSecond())
	fs.add("messages", "/s", perSecond(w.totals.messages, w.took))
	fs.add("outputs per message", "", w.outputsPerMessage())
	fs.add("bytes per token", "B", ratio(float64(w.totals.bytes), float64(w.totals.tokens)))
	fs.add("engine CPU", "%", 100*ratio(w.engineCPU.Seconds(), w.took.Seconds()))
	fs.add("bench's own CPU", "%", 100*ratio(w.benchCPU.Seconds(), w.took.Seconds()))
	fs.add("worker resident", "MB", w.resident)
}
