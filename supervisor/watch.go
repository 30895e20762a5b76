package supervisor

import (
	"context"
	"time"

	"vllm-vcr/ipc"
	"vllm-vcr/logs"
)

const (
	// silence is how long a worker may say nothing before somebody who looks at it has it pinged.
	silence = time.Second
	// pingPatience is how long they wait for its answer.
	pingPatience = time.Second
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

// read runs do where it may read the fleet's state, and returns after it. It reports false where the fleet has been
// stopped; do has not run then.
func (f *Fleet) read(do func()) bool {
	e := readEvent{do, make(chan struct{})}
	if !f.send(e) {
		return false
	}
	<-e.doneC
	return true
}

// pingSilent asks every living engine that has said nothing lately for a sign of life. It waits for at most a second.
func (f *Fleet) pingSilent(ctx context.Context) {
	var silent []*member
	f.read(func() {
		for _, m := range f.members {
			if m.process != nil && m.greeted && (time.Since(m.heard) > silence || m.frozen.Load()) {
				silent = append(silent, m)
			}
		}
	})
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	f.fanOut(ctx, silent, ipc.Call{Op: ipc.OpPing})
}

// Engines describes every engine, by index, after a sign of life of those that were silent. Once the fleet has been
// stopped it returns nothing.
func (f *Fleet) Engines(ctx context.Context) []EngineStatus {
	f.pingSilent(ctx)
	var list []EngineStatus
	f.read(func() {
		for _, m := range f.members {
			list = append(list, m.status())
		}
	})
	return list
}

func (m *member) status() EngineStatus {
	s := EngineStatus{
		Index: m.index, Rank: m.rank, State: m.shown(), Restarts: m.restarts, Joined: m.joined, Reason: m.reason,
		Generation:    m.page.Generation.Load(),
		Stats:         m.page.Stats(),
		Lost:          m.page.Lost.Load(),
		Dropped:       m.page.Dropped.Load(),
		HeldBytes:     m.page.HeldBytes.Load(),
		HeldSeconds:   time.Duration(m.page.HeldNanos.Load()).Seconds(),
		MergedOutputs: m.page.Merged.Load(),
		LogDropped:    m.page.LogDropped.Load(),
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
	h := Health{Status: HealthDraining}
	f.read(func() {
		h.Status = HealthOK
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
	})
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

// Filter returns the log filter in force, in its normal form.
func (f *Fleet) Filter() string { return f.opts.Log.Filter().String() }

// SetFilter changes the log filter of this process and of every worker's, and returns its normal form. A worker that is
// gone or silent doesn't matter: it gets the filter when it starts or wakes up.
func (f *Fleet) SetFilter(ctx context.Context, text string) (string, error) {
	filter, err := logs.ParseFilter(text)
	if err != nil {
		return "", err
	}
	f.opts.Log.SetFilter(filter)
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	f.fanOut(ctx, f.members, ipc.Call{Op: ipc.OpLog, Filter: filter.String()})
	return filter.String(), nil
}
