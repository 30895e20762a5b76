package supervisor

import (
	"context"
	"fmt"
	"strings"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
)

// Patch changes every engine or none, and returns engine 0's configuration afterwards.
func (f *Fleet) Patch(ctx context.Context, p config.Patch) (config.Live, error) {
	return f.patch(ctx, f.members, func() config.Patch { return p })
}

// PatchEngine changes one engine. index must be below Len.
func (f *Fleet) PatchEngine(ctx context.Context, index int, p config.Patch) (config.Live, error) {
	return f.patch(ctx, f.members[index:index+1], func() config.Patch { return p })
}

// ResetConfig gives every engine the configuration it was launched with, all or none.
func (f *Fleet) ResetConfig(ctx context.Context) (config.Live, error) {
	return f.resetConfig(ctx, f.members)
}

// ResetEngineConfig gives one engine the configuration it was launched with. index must be below Len.
func (f *Fleet) ResetEngineConfig(ctx context.Context, index int) (config.Live, error) {
	return f.resetConfig(ctx, f.members[index:index+1])
}

func (f *Fleet) resetConfig(ctx context.Context, members []*member) (config.Live, error) {
	return f.patch(ctx, members, func() config.Patch {
		var current []config.Live
		_ = f.read(ctx, func() { // where it cannot be read, the change fails too
			for _, m := range members {
				current = append(current, m.live)
			}
		})
		return config.Difference(f.cfg.Live, current...)
	})
}

func (f *Fleet) patch(ctx context.Context, members []*member, patch func() config.Patch) (config.Live, error) {
	answers, err := f.changeAll(ctx, members, func() (ipc.Call, error) { return ipc.Call{Patch: patch()}, nil })
	if err != nil {
		return config.Live{}, err
	}
	return liveOf(answers[0])
}

// ResetStats sets the counters of every engine back, or of none.
func (f *Fleet) ResetStats(ctx context.Context) error { return f.resetStats(ctx, f.members) }

// ResetEngineStats sets the counters of one engine back. index must be below Len.
func (f *Fleet) ResetEngineStats(ctx context.Context, index int) error {
	return f.resetStats(ctx, f.members[index:index+1])
}

func (f *Fleet) resetStats(ctx context.Context, members []*member) error {
	_, err := f.changeAll(ctx, members, func() (ipc.Call, error) { return ipc.Call{ResetStats: true}, nil })
	return err
}

// changeAll makes a change in two rounds. In the first every worker checks and keeps it; if one refuses, is gone or says
// nothing, all forget it and nothing has changed. The second is never given up once it was entered. Changes are made
// one after the other; call is made under their lock, and its error is that of the change.
func (f *Fleet) changeAll(ctx context.Context, members []*member, call func() (ipc.Call, error)) ([]ipc.Answer, error) {
	select {
	case f.changes <- struct{}{}:
		defer func() { <-f.changes }()
	case <-ctx.Done():
		return nil, fmt.Errorf("another change is under way: %w", ctx.Err())
	}
	f.change++
	c, err := call()
	if err != nil {
		return nil, err
	}
	c.Op, c.Change = ipc.OpPrepare, f.change
	_, errs := f.fanOut(ctx, members, c)
	if err := first(errs); err != nil {
		f.sendLate(abortEvent{members, c.Change})
		return nil, err
	}
	answers, errs, err := f.commit(ctx, members, c)
	if err != nil {
		return nil, err
	}
	for i := range errs {
		if expected(c, errs[i]) {
			errs[i] = nil
		}
	}
	return answers, applied(members, errs)
}

// commit enters the second round, unless an engine was lost since it agreed: then nothing changes anywhere, and the error
// says why. Each engine has to answer along with it, so that it is woken once.
func (f *Fleet) commit(ctx context.Context, members []*member, c ipc.Call) (answers []ipc.Answer, errs []error, err error) {
	e := commitEvent{members, c, askConfig(members), make(chan error, 1)}
	if err := f.send(context.Background(), e); err != nil {
		return nil, nil, fmt.Errorf("change not made: %w", err)
	}
	if err := <-e.madeC; err != nil {
		return nil, nil, err
	}
	answers, errs = f.collect(ctx, e.ask, nil)
	return answers, errs, nil
}

// applied words what came of a second round in which an engine died or fell silent. The others have the change, and a
// silent one will have it before it does anything else.
func applied(members []*member, errs []error) error {
	err := first(errs)
	if err == nil {
		return nil
	}
	var done []string
	for i, m := range members {
		if errs[i] == nil {
			done = append(done, name(m.index, m.rank))
		}
	}
	report := "the change is in force; no engine has confirmed it"
	if len(done) > 0 {
		report = "the change is in force; confirmed by " + strings.Join(done, ", ")
	}
	return withReport(err, report)
}

// abortEvent has those who were sent a change forget it.
type abortEvent struct {
	members []*member
	change  uint64
}

func (e abortEvent) apply(f *Fleet) {
	for _, m := range e.members {
		if m.prepared == e.change {
			m.prepared = 0
			f.tell(m, ipc.Call{Op: ipc.OpAbort, Change: e.change})
		}
	}
}

// commitEvent puts a change in force: for the processes there are, at once and without an answer, since a worker may owe
// another one; and for those that come later.
type commitEvent struct {
	members []*member
	call    ipc.Call
	ask     askEvent   // what is asked when it is in force
	madeC   chan error // capacity 1: nil, or why nothing has changed
}

func (e commitEvent) apply(f *Fleet) {
	for _, m := range e.members {
		if m.prepared != e.call.Change {
			abortEvent{e.members, e.call.Change}.apply(f)
			e.madeC <- m.lost()
			return
		}
	}
	for _, m := range e.members {
		f.commitOne(m, e.call)
	}
	f.changeFaults(e.members, e.call)
	e.ask.apply(f)
	e.madeC <- nil
}

// lost says that the process which prepared a change is no more.
func (m *member) lost() error {
	if m.process == nil {
		return m.gone()
	}
	return &GoneError{m.index, m.rank, "its process ended in the middle of the change; another one has taken its place"}
}

func (f *Fleet) commitOne(m *member, c ipc.Call) {
	m.prepared, m.generation = 0, c.Change
	if live, err := c.Patch.Apply(m.live); err == nil { // every worker has checked it
		m.live = live
	}
	if c.ResetStats {
		m.resetBy = c.Change
	}
	f.tell(m, ipc.Call{Op: ipc.OpCommit, Change: c.Change, Disarm: c.Disarm})
}
