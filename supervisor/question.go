package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vllm-vcr/ipc"
)

const (
	// writeTimeout bounds a write to a worker's socket, whose buffer holds far more than one ever owes.
	writeTimeout = 100 * time.Millisecond
	// frozenPatience is how long a call waits for a worker that let one go unanswered before.
	frozenPatience = time.Second
)

// question is one call to one worker. A worker owes at most one answer at a time; further questions wait for their turn.
type question struct {
	m      *member
	call   ipc.Call
	number uint64 // once sent
	replyC chan reply
}

type reply struct {
	answer ipc.Answer
	err    error
}

// ask hands a call to m's worker and returns at once.
func (f *Fleet) ask(m *member, c ipc.Call) *question {
	q := &question{m: m, call: c, replyC: make(chan reply, 1)}
	if !f.send(askEvent{q}) {
		q.replyC <- reply{err: &GoneError{m.index, m.rank, errStopped.Error()}}
	}
	return q
}

// wait returns the answer to q, or a *SilentError when ctx ends first, or sooner where the worker is known to be frozen.
// A question that was not answered in time freezes its worker, if it had been sent.
func (f *Fleet) wait(ctx context.Context, q *question) (ipc.Answer, error) {
	asked := time.Now()
	if q.m.frozen.Load() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, frozenPatience)
		defer cancel()
	}
	select {
	case r := <-q.replyC:
		return r.answer, r.err
	case <-ctx.Done():
	}
	f.send(giveUpEvent{q})
	select {
	case r := <-q.replyC: // it came at the last moment
		return r.answer, r.err
	default:
	}
	return ipc.Answer{}, &SilentError{q.m.index, q.m.rank, fmt.Sprintf("nothing heard for %v", time.Since(asked).Round(time.Millisecond))}
}

// askEvent is a new question.
type askEvent struct{ q *question }

func (e askEvent) apply(f *Fleet) {
	m := e.q.m
	if m.process == nil {
		e.q.replyC <- reply{err: m.gone()}
		return
	}
	m.queue = append(m.queue, e.q)
	f.askNext(m)
}

// askNext sends the next question to a worker that owes nothing.
func (f *Fleet) askNext(m *member) {
	if m.owing != nil || !m.greeted || len(m.queue) == 0 {
		return
	}
	q := m.queue[0]
	m.queue = m.queue[1:]
	m.owing = q
	f.calls++
	q.number = f.calls
	if q.call.Op == ipc.OpPrepare {
		m.prepared = q.call.Change
	}
	f.write(m, ipc.KindCall, q.number, q.call)
}

// answered takes an answer to the call of that number. Any other number answers a call nobody made, or twice.
func (f *Fleet) answered(m *member, number uint64, a ipc.Answer) {
	q := m.owing
	if q == nil || q.number != number {
		f.log.Warn().Int("engine", m.index).Uint64("call", number).Msg("answer dropped: no such call is open")
		return
	}
	m.owing = nil
	if m.frozen.CompareAndSwap(true, false) {
		m.reason = ""
		f.log.Info().Int("engine", m.index).Msg("engine answers again")
	}
	select {
	case q.replyC <- reply{answer: a}:
	default: // the asker has gone
	}
	f.askNext(m)
}

// giveUpEvent says that nobody waits for a question any more.
type giveUpEvent struct{ q *question }

func (e giveUpEvent) apply(f *Fleet) {
	m := e.q.m
	for i, q := range m.queue {
		if q == e.q {
			m.queue = append(m.queue[:i], m.queue[i+1:]...)
			return
		}
	}
	if m.owing == e.q && !m.frozen.Swap(true) {
		m.reason = fmt.Sprintf("it did not answer a %s call", e.q.call.Op)
		f.log.Warn().Int("engine", m.index).Str("call", e.q.call.Op).Msg("engine is frozen: a call went unanswered")
	}
}

// resolveAll ends every open question of m with err.
func (f *Fleet) resolveAll(m *member, err error) {
	if m.owing != nil {
		m.queue = append(m.queue, m.owing)
	}
	for _, q := range m.queue {
		select {
		case q.replyC <- reply{err: err}:
		default: // the asker has gone
		}
	}
	m.owing, m.queue = nil, nil
}

// write sends one frame to m's process. A frame that could not be written whole ruins the link: it is closed, and the
// worker leaves.
func (f *Fleet) write(m *member, kind ipc.Kind, call uint64, body any) {
	frame, err := ipc.Append(nil, kind, call, body)
	if err == nil {
		err = errors.Join(m.process.conn.SetWriteDeadline(time.Now().Add(writeTimeout)), writeAll(m.process, frame))
	}
	if err != nil {
		f.log.Warn().Int("engine", m.index).Err(err).Msg("link closed: a frame could not be written")
		_ = m.process.conn.Close() // its reader sees the end
	}
}

func writeAll(p *process, frame []byte) error {
	_, err := p.conn.Write(frame)
	return err
}
