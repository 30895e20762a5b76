package supervisor

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
)

// member is one engine as the supervisor sees it, whichever process runs it at the moment. It belongs to Fleet.Run, but for
// the page and frozen, which anyone may read.
type member struct {
	index, rank int
	page        *ipc.Page
	pageFile    *os.File
	frozen      atomic.Bool // it let a call go unanswered

	live       config.Live // what its engine has, or will have when it starts
	generation uint64      // number of the change that made it so

	process    *process // nil while none runs
	state      string
	reason     string // why it is dead, failed or frozen
	joined     string
	joinedOnce bool
	addresses  *ipc.Addresses // of the frontend, once known
	greeted    bool           // its process said hello
	heard      time.Time      // when its process last said anything

	owing    *question // sent and not answered
	queue    []*question
	prepared uint64 // number of a change whose prepare was sent, 0 = none

	restarts uint64
	started  time.Time
	deaths   []time.Time // within the last minute
	backoff  time.Duration
	restart  *time.Timer // nil = it is not about to be started again
}

func newMember(index int, cfg config.Config) (*member, error) {
	page, file, err := ipc.NewPage()
	if err != nil {
		return nil, err
	}
	return &member{
		index: index, rank: index + int(cfg.StartRank), page: page, pageFile: file,
		live: cfg.Live.Clone(), state: StateStarting,
	}, nil
}

func (m *member) closePage() {
	_ = errors.Join(m.page.Close(), m.pageFile.Close()) // memory of ours that nobody reads any more
}

func (m *member) gone() error { return &GoneError{m.index, m.rank, m.reason} }

// spawn starts a process for m and says everything it has to know.
func (f *Fleet) spawn(m *member) {
	p, err := f.spawner.start(f.opts.Command(), m.pageFile)
	if err != nil {
		f.died(m, err.Error())
		return
	}
	m.process, m.greeted, m.state, m.reason = p, false, StateStarting, ""
	m.started, m.heard = time.Now(), time.Now()
	cfg := f.cfg.Clone()
	cfg.Live = m.live.Clone()
	f.write(m, ipc.KindStart, 0, ipc.Start{
		Magic: ipc.Magic, Version: ipc.Version, Config: cfg, Index: m.index, Generation: m.generation,
		LogFilter: f.opts.Log.Filter().String(), LogFormat: int(f.opts.LogFormat), Addresses: m.addresses,
	})
	f.running.Go(func() { f.listen(m, p) })
}

// listen reads what a process says until its socket ends, and then waits for the end of the process itself.
func (f *Fleet) listen(m *member, p *process) {
	var buf []byte
	for {
		var frame ipc.Frame
		var err error
		if frame, buf, err = ipc.ReadFrame(p.conn, buf); err != nil {
			break
		}
		e, err := decodeFrame(m, p, frame)
		if err != nil {
			f.log.Warn().Int("engine", m.index).Err(err).Msg("worker gives no sense: link closed")
			break
		}
		if !f.send(e) {
			break
		}
	}
	f.send(endedEvent{m, p, p.wait()})
}

// decodeFrame makes an event of a frame, which it doesn't keep.
func decodeFrame(m *member, p *process, frame ipc.Frame) (event, error) {
	e := frameEvent{m: m, p: p, kind: frame.Kind, call: frame.Call}
	switch frame.Kind {
	case ipc.KindHello:
		var hello ipc.Hello
		if err := frame.Decode(&hello); err != nil {
			return nil, err
		}
		return e, hello.Check()
	case ipc.KindState:
		return e, frame.Decode(&e.state)
	case ipc.KindAnswer:
		return e, frame.Decode(&e.answer)
	default:
		return nil, fmt.Errorf("frame kind %d, want hello, state or answer", frame.Kind)
	}
}

// frameEvent is something that a process said.
type frameEvent struct {
	m      *member
	p      *process
	kind   ipc.Kind
	call   uint64
	state  ipc.State
	answer ipc.Answer
}

func (e frameEvent) apply(f *Fleet) {
	m := e.m
	if m.process != e.p {
		return
	}
	m.heard = time.Now()
	switch e.kind {
	case ipc.KindHello:
		m.greeted = true
		f.askNext(m)
	case ipc.KindState:
		f.reported(m, e.state)
	case ipc.KindAnswer:
		f.answered(m, e.call, e.answer)
	}
}

// reported takes a worker's word for its state.
func (f *Fleet) reported(m *member, s ipc.State) {
	lost := s.State == ipc.StateReconnecting && m.state == StateReady
	m.state = s.State
	f.log.Debug().Int("engine", m.index).Str("state", s.State).Msg("engine state")
	if s.State == ipc.StateReady {
		m.addresses, m.joined, m.joinedOnce = s.Addresses, s.Joined, true
		if f.startup != nil && len(f.unready()) == 0 {
			f.startup = nil
			f.log.Info().Int("engines", len(f.members)).Msg("every engine is ready")
		}
	}
	if lost && f.cfg.OnFrontendLoss == config.LossExit {
		f.fail(fmt.Errorf("%s: %w", name(m.index, m.rank), errFrontendLost))
	}
}

// endedEvent is the end of a process.
type endedEvent struct {
	m      *member
	p      *process
	reason string
}

func (e endedEvent) apply(f *Fleet) {
	if e.m.process != e.p {
		return
	}
	if e.m.reason == "" || !f.draining {
		e.m.reason = e.reason
	}
	f.died(e.m, e.m.reason)
}

// died closes the books of m's process and decides what comes next.
func (f *Fleet) died(m *member, reason string) {
	lost := m.page.CloseLedger()
	m.process, m.greeted, m.prepared = nil, false, 0
	m.state, m.reason = StateDead, reason
	m.frozen.Store(false)
	f.resolveAll(m, m.gone())
	if f.draining {
		f.log.Info().Int("engine", m.index).Str("reason", reason).Msg("engine shut down")
		return
	}
	f.log.Error().Int("engine", m.index).Str("reason", reason).Uint64("lost", lost).Msg("engine died")
	f.announce(m)
	if !m.joinedOnce {
		f.fail(fmt.Errorf("%s died before it was ready: %s", name(m.index, m.rank), reason))
		return
	}
	if f.cfg.Restart == config.RestartOnFailure {
		f.planRestart(m)
	}
}
