package supervisor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"vllm-vcr/ipc"
)

// question is one call to one worker. A worker owes at most one answer at a time; further questions wait for their turn.
type question struct {
	m      *member
	call   ipc.Call
	asked  time.Time
	replyC chan reply // capacity 1

	number uint64    // 0 until it is sent; belongs to Fleet.Run
	sent   time.Time // likewise
}

type reply struct {
	answer ipc.Answer
	err    error
}

// resolve ends q, if it has not ended yet.
func (q *question) resolve(r reply) {
	select {
	case q.replyC <- r:
	default:
	}
}

// wait returns the answer to q, or a *SilentError when ctx ends first, or sooner where the worker is known to be frozen.
func (f *Fleet) wait(ctx context.Context, q *question) (ipc.Answer, error) {
	if q.m.frozen.Load() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, q.asked.Add(f.timing.patience))
		defer cancel()
	}
	select {
	case r := <-q.replyC:
		return r.answer, r.err
	case <-ctx.Done():
	}
	f.sendLate(giveUpEvent{q})
	select {
	case r := <-q.replyC: // it came at the last moment
		return r.answer, r.err
	default:
	}
	return ipc.Answer{}, q.unanswered()
}

func (q *question) unanswered() error {
	waited := time.Since(q.asked).Round(time.Millisecond)
	return &SilentError{q.m.index, q.m.rank, fmt.Sprintf("nothing heard for %v", waited)}
}

// askEvent is new questions. It takes them all at once, so that any two calls reach all workers in the same order.
type askEvent struct{ questions []*question }

func (e askEvent) apply(f *Fleet) {
	for _, q := range e.questions {
		m := q.m
		if m.process == nil && m.state != StateStarting {
			q.resolve(reply{err: m.gone()})
			continue
		}
		m.queue = append(m.queue, q)
		f.askNext(m)
	}
}

// askNext sends the next question to a worker that owes nothing.
func (f *Fleet) askNext(m *member) {
	if m.owing != nil || !m.greeted {
		return
	}
	if m.staleFilter {
		m.staleFilter = false
		f.tell(m, ipc.Call{Op: ipc.OpLog, Filter: f.Filter()})
	}
	for m.owing == nil && len(m.queue) > 0 {
		q := m.queue[0]
		m.queue = m.queue[1:]
		f.put(m, q)
	}
}

// put sends q, or answers it where it cannot be sent.
func (f *Fleet) put(m *member, q *question) {
	f.calls++
	if err := f.write(m, ipc.KindCall, f.calls, q.call); err != nil {
		q.resolve(reply{err: fmt.Errorf("%s: %w", name(m.index, m.rank), err)})
		return
	}
	q.number, q.sent = f.calls, time.Now()
	m.owing = q
	if q.call.Op == ipc.OpPrepare {
		m.prepared = q.call.Change
	}
}

// answered takes an answer to the call of that number. Any other number answers a call nobody made, or twice: that is told
// once for each process.
func (f *Fleet) answered(m *member, number uint64, a ipc.Answer) {
	q := m.owing
	if q == nil || q.number != number {
		if !m.process.strayed {
			m.process.strayed = true
			f.log.Warn().Int("engine", m.index).Uint64("call", number).Msg("answer dropped: no such call is open")
		}
		return
	}
	m.owing = nil
	if m.frozen.CompareAndSwap(true, false) {
		m.reason = ""
		f.log.Info().Int("engine", m.index).Msg("engine answers again")
	}
	q.resolve(reply{answer: a})
	f.askNext(m)
}

// giveUpEvent says that nobody waits for a question any more. What was sent stays open: its answer is still due.
type giveUpEvent struct{ q *question }

func (e giveUpEvent) apply(f *Fleet) {
	m := e.q.m
	if i := slices.Index(m.queue, e.q); i >= 0 {
		m.queue = slices.Delete(m.queue, i, i+1)
		m.staleFilter = m.staleFilter || e.q.call.Op == ipc.OpLog
	}
	f.judge(m)
}

// judge calls a worker frozen that owes an answer for too long. Those who leave early say nothing about a worker.
func (f *Fleet) judge(m *member) {
	if m.owing == nil || time.Since(m.owing.sent) < f.timing.frozenAfter || m.frozen.Swap(true) {
		return
	}
	m.reason = fmt.Sprintf("it did not answer a %s call", m.owing.call.Op)
	f.log.Warn().Int("engine", m.index).Str("call", m.owing.call.Op).Msg("engine is frozen: a call went unanswered")
}

// resolveAll ends every open question of m with err.
func (f *Fleet) resolveAll(m *member, err error) {
	if m.owing != nil {
		m.owing.resolve(reply{err: err})
	}
	for _, q := range m.queue {
		q.resolve(reply{err: err})
	}
	m.owing, m.queue = nil, nil
}

// write has one frame sent to m's process, which there must be. The error says that there can be no such frame; a process
// that takes none any more is ended.
func (f *Fleet) write(m *member, kind ipc.Kind, call uint64, body any) error {
	frame, err := ipc.Append(nil, kind, call, body)
	if err != nil {
		return err
	}
	if !m.process.enqueue(frame) {
		m.process.blame = fmt.Sprintf("it left %d frames unread", maxPending)
		m.process.kill()
	}
	return nil
}

// tell sends a call that expects no answer to m's process, if there is one that listens.
func (f *Fleet) tell(m *member, c ipc.Call) {
	if m.process == nil || m.process.left {
		return
	}
	if err := f.write(m, ipc.KindCall, 0, c); err != nil {
		f.log.Error().Int("engine", m.index).Str("call", c.Op).Err(err).Msg("call not sent")
	}
}
