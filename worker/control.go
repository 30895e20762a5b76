package worker

import (
	"fmt"
	"runtime"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/worker/engine"
)

// prepared is a change that passed round one and waits for round two. A worker keeps one at most.
type prepared struct {
	call ipc.Call
	live config.Live // after it
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
	l.page.Goroutines.Store(uint64(runtime.NumGoroutine()))
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
		l.commit(now, c)
		return l.configAnswer()
	case ipc.OpAbort:
		if l.prepared != nil && l.prepared.call.Change == c.Change {
			l.prepared = nil
		}
		return ipc.Answer{}
	case ipc.OpDrain:
		begun := l.beginDrain(now, seconds(c.Timeout), c.Stay)
		return ipc.Answer{Drain: &begun}
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
	if fault := checkFault(c.Arm); fault != "" {
		return ipc.Answer{Refused: fault}
	}
	l.prepared = &prepared{call: c, live: live}
	return ipc.Answer{}
}

// commit applies what was prepared under this number. A number that is not prepared was applied before; but faults are taken
// back in any case, as a process that was started meanwhile has not been asked.
func (l *loop) commit(now engine.Time, c ipc.Call) {
	l.disarm(now, c.Disarm)
	p := l.prepared
	if p == nil || p.call.Change != c.Change {
		return
	}
	l.prepared = nil
	switch {
	case p.call.ResetStats:
		l.publish(now)
		l.page.Reset()
	case p.call.Arm != nil:
		l.arm(now, *p.call.Arm)
	default:
		l.setLive(p.live)
	}
	l.page.Generation.Store(c.Change) // last: what it names has been done, whenever this process is killed
}

func (l *loop) setLive(live config.Live) {
	l.live = live
	l.outputs.verbose = live.LogRequests
	l.engine.SetParams(params(live))
}
