package worker

import (
	"fmt"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/worker/engine"
)

// prepared is a change that passed round one and waits for round two. A worker keeps one at most.
type prepared struct {
	change uint64
	live   config.Live
	reset  bool
}

// callInput is one call of the supervisor. Its answer goes back under number, unless that is 0.
type callInput struct {
	number uint64
	call   ipc.Call
	answer func(number uint64, a ipc.Answer)
}

func isCall(in input) bool {
	_, call := in.(callInput)
	return call
}

func (in callInput) apply(l *loop, now engine.Time) {
	a := l.perform(now, in.call)
	if in.number != 0 {
		in.answer(in.number, a)
	}
}

func (l *loop) perform(now engine.Time, c ipc.Call) ipc.Answer {
	switch c.Op {
	case ipc.OpPing:
		return ipc.Answer{}
	case ipc.OpConfig:
		return l.configAnswer()
	case ipc.OpStats:
		l.publish(now)
		stats := l.page.Stats()
		return ipc.Answer{Stats: &stats}
	case ipc.OpRequests:
		return l.requestsAnswer(c)
	case ipc.OpPrepare:
		return l.prepare(c)
	case ipc.OpCommit:
		l.commit(now, c.Change)
		return l.configAnswer()
	case ipc.OpAbort:
		if l.prepared != nil && l.prepared.change == c.Change {
			l.prepared = nil
		}
		return ipc.Answer{}
	case ipc.OpDrain:
		return ipc.Answer{Unfinished: l.beginDrain(now, seconds(c.Timeout), c.Stay)}
	default:
		return ipc.Answer{Refused: fmt.Sprintf("operation %q is not known", c.Op)}
	}
}

func (l *loop) configAnswer() ipc.Answer {
	live := l.live.Clone()
	return ipc.Answer{Config: &live}
}

// prepare checks a change against what this engine has and uses, and keeps it for a commit.
func (l *loop) prepare(c ipc.Call) ipc.Answer {
	l.prepared = nil
	if key := c.Patch.Timing(); key != "" && l.traced {
		return ipc.Answer{Refused: fmt.Sprintf("%s: cannot be changed while a latency trace brings the timing", key)}
	}
	live, err := c.Patch.Apply(l.live)
	if err != nil {
		return ipc.Answer{Refused: err.Error()}
	}
	l.prepared = &prepared{change: c.Change, live: live, reset: c.ResetStats}
	return ipc.Answer{}
}

// commit applies what was prepared under this number. A number that is not prepared was applied before.
func (l *loop) commit(now engine.Time, change uint64) {
	p := l.prepared
	if p == nil || p.change != change {
		return
	}
	l.prepared = nil
	if p.reset {
		l.publish(now)
		l.page.Reset()
	} else {
		l.setLive(p.live)
	}
	l.page.Generation.Store(change) // last: what it names has been done, whenever this process is killed
}

func (l *loop) setLive(live config.Live) {
	l.live = live
	l.outputs.verbose = live.LogRequests
	l.engine.SetParams(params(live))
}
