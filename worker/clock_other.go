//go:build !linux

package worker

import (
	"time"

	"vllm-vcr/worker/engine"
)

// NewClock starts a clock at an arbitrary origin above 0.
func NewClock() Clock { return Clock{start: time.Now(), base: time.Hour} }

// alarm wakes a select at an instant of a Clock, with the runtime's timers. Only one goroutine may use it.
type alarm struct {
	timer *time.Timer
	tick  chan struct{} // capacity 1: a tick that nobody took yet stands for all later ones
	armed time.Duration
}

func newAlarm() (*alarm, error) {
	a := &alarm{tick: make(chan struct{}, 1)}
	a.timer = time.AfterFunc(time.Hour, func() {
		select {
		case a.tick <- struct{}{}:
		default:
		}
	})
	return a, nil
}

// at returns what to select on for an alarm at due: nothing for Never, a channel that is always ready when due has come.
func (a *alarm) at(now, due time.Duration) <-chan struct{} {
	switch {
	case due == engine.Never:
		return nil
	case due <= now:
		return always
	}
	if due != a.armed {
		a.armed = due
		a.timer.Reset(due - now)
	}
	return a.tick
}

func (a *alarm) close() { a.timer.Stop() }
