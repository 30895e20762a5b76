package supervisor

import (
	"context"
	"errors"
	"time"

	"vllm-vcr/ipc"
)

// readEvent runs do where it may read the fleet's state.
type readEvent struct {
	do    func()
	doneC chan struct{}
}

func (e readEvent) apply(*Fleet) {
	e.do()
	close(e.doneC)
}

// read runs do where it may read the fleet's state, and returns after it. Where send has an error, do has not run.
func (f *Fleet) read(ctx context.Context, do func()) error {
	e := readEvent{do, make(chan struct{})}
	if err := f.send(ctx, e); err != nil {
		return err
	}
	<-e.doneC
	return nil
}

// pingSilent asks every living engine that has said nothing lately for a sign of life. It waits for at most a second.
func (f *Fleet) pingSilent(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, f.timing.patience)
	defer cancel()
	var silent []*member
	_ = f.read(ctx, func() { // the caller reads after this, and sees why not
		for _, m := range f.members {
			if m.process != nil && m.greeted && (time.Since(m.heard) > f.timing.silence || m.frozen.Load()) {
				silent = append(silent, m)
			}
		}
	})
	if len(silent) > 0 {
		f.fanOut(ctx, silent, ipc.Call{Op: ipc.OpPing})
	}
}

// Engines describes every engine, by index, after a sign of life of those that were silent. The list is empty before Run
// has begun and once the fleet has been stopped.
func (f *Fleet) Engines(ctx context.Context) []EngineStatus {
	f.pingSilent(ctx)
	ctx, cancel := f.late()
	defer cancel()
	list := []EngineStatus{}
	_ = f.read(ctx, func() { // as said above
		for _, m := range f.members {
			s := m.status()
			s.FaultsActive = f.activeFaults(m)
			list = append(list, s)
		}
	})
	return list
}

func (m *member) status() EngineStatus {
	strain := m.page.Strain()
	s := EngineStatus{
		Index: m.index, Rank: m.rank, State: m.shown(), Restarts: m.restarts, Joined: m.joined, Reason: m.reason,
		Generation:    m.page.Generation.Load(),
		Stats:         m.page.Stats(),
		Lost:          m.page.Lost.Load(),
		Dropped:       m.page.Dropped.Load(),
		HeldBytes:     m.page.HeldBytes.Load(),
		HeldSeconds:   time.Duration(m.page.HeldNanos.Load()).Seconds(),
		MergedOutputs: m.page.Merged.Load(),
		Goroutines:    m.page.Goroutines.Load(),
		LogDropped:    m.page.LogDropped.Load(),
		Saturated:     strain.Saturated,
		InputsHigh:    strain.InputsHigh,
		OutputHigh:    strain.OutputHigh,
		Lateness:      newLateness(strain),

		JournalDropped: m.page.JournalDropped.Load(),
		FaultsApplied:  m.page.FaultCounts(),
	}
	if m.process != nil {
		s.PID = m.process.pid()
	}
	return s
}

// shown is the state of m, as far as the supervisor can tell.
func (m *member) shown() string {
	if m.process != nil && m.frozen.Load() {
		return StateFrozen
	}
	return m.state
}

// Health sums the engines up in one word, after a sign of life of those that were silent.
func (f *Fleet) Health(ctx context.Context) Health {
	f.pingSilent(ctx)
	ctx, cancel := f.late()
	defer cancel()
	var h Health
	switch err := f.read(ctx, func() { h = f.health() }); {
	case errors.Is(err, errStopped):
		return Health{Status: HealthDraining}
	case err != nil: // Run has not begun
		return Health{Status: HealthStarting}
	}
	return h
}

func (f *Fleet) health() Health {
	h := Health{Status: HealthOK}
	for _, m := range f.members {
		state := m.shown()
		if state == StateReady {
			continue
		}
		h.Engines = append(h.Engines, EngineHealth{m.index, state, m.reason})
		h.Status = worse(h.Status, state, m.restarts > 0)
	}
	if f.draining {
		h.Status = HealthDraining
	}
	return h
}

// worse is the health of a fleet once an engine in this state is seen. An engine that starts for the first time is no
// trouble; one that had to be started again is.
func worse(health, state string, again bool) string {
	if state == StateStarting && !again && health == HealthOK {
		return HealthStarting
	}
	if state == StateStarting && !again {
		return health
	}
	return HealthDegraded
}
