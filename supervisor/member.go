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
// index, rank and frozen, which anyone may read.
type member struct {
	index, rank int
	page        *ipc.Page
	pageFile    *os.File
	frozen      atomic.Bool // it let a call go unanswered

	live       config.Live // what its engine has, or will have when it starts
	generation uint64      // number of the change that made it so
	prepared   uint64      // number of a change whose prepare its process was sent, 0 = none
	resetBy    uint64      // number of a reset of the counters that its process was told to do

	process    *process // nil while none runs
	state      string
	reason     string // why it is dead, failed or frozen
	joined     string
	joinedOnce bool           // or was drained before it could
	addresses  *ipc.Addresses // of the frontend, once known
	greeted    bool           // its process said hello
	heard      time.Time      // when its process last said anything

	owing       *question // sent and not answered
	queue       []*question
	staleFilter bool // its process has yet to hear of the log filter in force

	restarts uint64
	past     past
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
	m.past.started = time.Now()
	p, err := f.spawner.start(f.opts.Command(), m.pageFile)
	if err != nil {
		f.died(m, err.Error(), false)
		return
	}
	m.process, m.greeted, m.state, m.reason, m.heard = p, false, StateStarting, "", m.past.started
	cfg := f.cfg.Clone()
	cfg.Live = m.live.Clone()
	f.running.Go(p.write)
	f.running.Go(func() { f.listen(m, p) })
	err = f.write(m, ipc.KindStart, 0, ipc.Start{
		Magic: ipc.Magic, Version: ipc.Version, Config: cfg, Index: m.index, Generation: m.generation,
		LogFilter: f.opts.Log.Filter().String(), LogFormat: int(f.opts.LogFormat), Addresses: m.addresses, Faults: f.faultsFor(m),
	})
	if err != nil {
		p.blame = err.Error()
		p.kill()
	}
}

// died closes the books of m's process and decides what comes next. Where its end is final it is not started again.
func (f *Fleet) died(m *member, reason string, final bool) {
	f.finishReset(m)
	lost := m.page.CloseLedger()
	m.process, m.greeted, m.prepared, m.staleFilter = nil, false, 0, false
	m.state, m.reason = StateDead, reason
	m.frozen.Store(false)
	f.resolveAll(m, m.gone())
	if f.draining {
		f.log.Info().Int("engine", m.index).Str("reason", reason).Uint64("lost", lost).Msg("engine shut down")
		return
	}
	f.log.Error().Int("engine", m.index).Str("reason", reason).Uint64("lost", lost).Msg("engine died")
	f.announce(m)
	switch {
	case !m.joinedOnce:
		f.fail(fmt.Errorf("%s died before it was ready: %s", name(m.index, m.rank), reason))
	case final:
		m.state = StateFailed
	case f.cfg.Restart == config.RestartOnFailure:
		f.planRestart(m)
	}
	f.endFaults(m)
}

// finishReset does what a process was told to and died before: set back the counters.
func (f *Fleet) finishReset(m *member) {
	if m.page.Generation.Load() < m.resetBy {
		m.page.Reset()
	}
	m.resetBy = 0
}
