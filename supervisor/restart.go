package supervisor

import (
	"context"
	"fmt"
	"time"

	"vllm-vcr/ipc"
	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
)

// How soon a dead worker is started again, and when that is given up.
const (
	firstBackoff  = time.Second
	lastBackoff   = 30 * time.Second
	deathWindow   = time.Minute
	deathsAllowed = 5 // this many within the window are too many
)

// planRestart has m started again after a pause that doubles from death to death, and starts over after a process that
// lived for longer than the window. Too many deaths in a short time are final.
func (f *Fleet) planRestart(m *member) {
	now := time.Now()
	if now.Sub(m.started) > deathWindow || m.backoff == 0 {
		m.backoff = firstBackoff
	} else {
		m.backoff = min(2*m.backoff, lastBackoff)
	}
	m.deaths = append(within(m.deaths, now), now)
	if len(m.deaths) >= deathsAllowed {
		m.state = StateFailed
		m.reason = fmt.Sprintf("%d deaths within %v, the last: %s", len(m.deaths), deathWindow, m.reason)
		f.log.Error().Int("engine", m.index).Str("reason", m.reason).Msg("engine failed: it is not started again")
		return
	}
	f.log.Info().Int("engine", m.index).Dur("pause", m.backoff).Msg("engine will be started again")
	m.restart = time.AfterFunc(m.backoff, func() { f.send(restartEvent{m}) })
}

func within(deaths []time.Time, now time.Time) []time.Time {
	var recent []time.Time
	for _, t := range deaths {
		if now.Sub(t) < deathWindow {
			recent = append(recent, t)
		}
	}
	return recent
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

// announceTimeout bounds the attempt to tell a frontend of a death.
const announceTimeout = 2 * time.Second

// announce tells the frontend of a dead engine what the engine could not say any more, where that is wanted.
func (f *Fleet) announce(m *member) {
	if !f.cfg.AnnounceDeath || m.addresses == nil {
		return
	}
	addresses := *m.addresses
	f.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), announceTimeout)
		defer cancel()
		for _, address := range addresses.Outputs {
			if err := announceAt(ctx, address); err != nil {
				f.log.Warn().Int("engine", m.index).Err(err).Msg("death not announced")
			}
		}
	})
}

func announceAt(ctx context.Context, address string) error {
	conn, err := zmtp.Dial(ctx, address, zmtp.Options{Type: zmtp.Push})
	if err != nil {
		return err
	}
	if err := conn.Send([]byte(enginecore.EngineCoreDead)); err != nil {
		return err
	}
	return conn.Close(ctx)
}

// tell sends a call that expects no answer to m's process, if there is one.
func (f *Fleet) tell(m *member, c ipc.Call) {
	if m.process != nil {
		f.write(m, ipc.KindCall, 0, c)
	}
}
