package supervisor

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// planRestart has m started again after a pause that doubles from death to death, and starts over after a process that
// lived for longer than the window. Too many deaths in a short time are final.
func (f *Fleet) planRestart(m *member) {
	now := time.Now()
	m.backoff = f.timing.pause(m.backoff, now.Sub(m.started))
	m.deaths = append(since(m.deaths, now.Add(-f.timing.deathWindow)), now)
	if len(m.deaths) >= f.timing.deathsAllowed {
		m.state = StateFailed
		m.reason = fmt.Sprintf("%d deaths within %v, the last: %s", len(m.deaths), f.timing.deathWindow, m.reason)
		f.log.Error().Int("engine", m.index).Str("reason", m.reason).Msg("engine failed: it is not started again")
		return
	}
	f.log.Info().Int("engine", m.index).Dur("pause", m.backoff).Msg("engine will be started again")
	m.restart = time.AfterFunc(m.backoff, func() {
		_ = f.send(context.Background(), restartEvent{m}) // after the end of Run nothing is started
	})
}

// pause is how long to wait after a process that lived for so long, and was started after a pause of last.
func (t timing) pause(last, lived time.Duration) time.Duration {
	if last == 0 || lived > t.deathWindow {
		return t.firstBackoff
	}
	return min(2*last, t.lastBackoff)
}

// since returns the deaths after start.
func since(deaths []time.Time, start time.Time) []time.Time {
	return slices.DeleteFunc(deaths, func(t time.Time) bool { return !t.After(start) })
}

// cancelRestart leaves a dead engine dead.
func (m *member) cancelRestart() {
	if m.restart != nil {
		m.restart.Stop()
		m.restart = nil
	}
}

// restartEvent is the end of the pause before a restart.
type restartEvent struct{ m *member }

func (e restartEvent) apply(f *Fleet) {
	if e.m.restart == nil || e.m.process != nil {
		return // called off meanwhile
	}
	e.m.restart = nil
	e.m.restarts++
	f.spawn(e.m)
}
