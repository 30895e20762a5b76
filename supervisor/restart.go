package supervisor

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// past is what the restart of a process depends on.
type past struct {
	started time.Time // of the process there is, or of the attempt
	deaths  []time.Time
	backoff time.Duration
}

// died notes a death, and returns for how long to wait before the next start: a pause that doubles from death to death, and
// starts over after a process that lived for longer than the window. Too many deaths in a short time are final; why tells of
// them then, the last of which had that reason.
func (p *past) died(t timing, reason string) (pause time.Duration, why string) {
	now := time.Now()
	p.backoff = t.pause(p.backoff, now.Sub(p.started))
	p.deaths = append(since(p.deaths, now.Add(-t.deathWindow)), now)
	if len(p.deaths) >= t.deathsAllowed {
		return 0, fmt.Sprintf("%d deaths within %v, the last: %s", len(p.deaths), t.deathWindow, reason)
	}
	return p.backoff, ""
}

// planRestart has m started again, unless it died too often.
func (f *Fleet) planRestart(m *member) {
	pause, why := m.past.died(f.timing, m.reason)
	if why != "" {
		m.state, m.reason = StateFailed, why
		f.log.Error().Int("engine", m.index).Str("reason", m.reason).Msg("engine failed: it is not started again")
		return
	}
	f.log.Info().Int("engine", m.index).Dur("pause", pause).Msg("engine will be started again")
	m.restart = time.AfterFunc(pause, func() {
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
