package worker

import (
	"cmp"
	"slices"
	"strings"

	"vllm-vcr/ipc"
	"vllm-vcr/worker/engine"
)

// match is a request that a query wants: one that has ended, or one that is the engine's.
type match struct {
	number uint64
	ended  *record
	live   *engine.Request // nil = it has ended
	state  string
}

func (l *loop) requestsAnswer(c ipc.Call) ipc.Answer {
	if c.Query == nil {
		return ipc.Answer{Refused: "the call holds no query"}
	}
	return ipc.Answer{Requests: l.requests(*c.Query)}
}

// requests answers a query, newest arrival first, with as many as fit into a frame.
func (l *loop) requests(q ipc.RequestQuery) *ipc.Requests {
	matches := l.matches(q)
	slices.SortFunc(matches, func(a, b match) int { return cmp.Compare(b.number, a.number) })
	answer := &ipc.Requests{List: []ipc.Request{}, Matched: uint64(len(matches)), Dropped: l.outputs.journal.dropped()}
	room := listBytes
	for _, m := range matches[:min(uint64(len(matches)), q.Limit)] {
		r := l.tell(m)
		if room -= mostBytes(&r); room < 0 {
			break
		}
		answer.List = append(answer.List, r)
	}
	return answer
}

// matches looks only where requests of the wanted states can be.
func (l *loop) matches(q ipc.RequestQuery) []match {
	wants := func(state string) bool { return len(q.States) == 0 || slices.Contains(q.States, state) }
	var list []match
	if wants(ipc.RequestWaiting) || wants(ipc.RequestRunning) {
		for r, runs := range l.engine.Unfinished() {
			state := ipc.RequestWaiting
			if runs {
				state = ipc.RequestRunning
			}
			c := r.Caller.(*caller)
			if wants(state) && isNamed(q.ID, r.ID, c.external) {
				list = append(list, match{number: c.number, live: r, state: state})
			}
		}
	}
	kept, id := l.outputs.journal.kept(), bounded(q.ID)
	for i := range kept {
		if r := &kept[i]; wants(r.state) && isNamed(id, r.id, r.external) {
			list = append(list, match{number: r.number, ended: r})
		}
	}
	return list
}

func isNamed(wanted, id, external string) bool {
	return wanted == "" || wanted == id || wanted == external
}

// tell describes a request for others than this process, who have another clock and no need of long texts.
func (l *loop) tell(m match) ipc.Request {
	r := m.ended
	if m.live != nil {
		fresh := recordOf(m.live, m.state)
		r = &fresh
	}
	told := ipc.Request{
		ID: bounded(r.id), ExternalID: bounded(r.external), Client: uint64(r.client), State: r.state, Cause: r.cause,
		PromptTokens: r.prompt, MaxTokens: r.limit, OutputTokens: r.emitted, LoRA: bounded(r.adapter), Number: r.number,
		Arrived: l.wall(r.arrived), Admitted: l.wall(r.admitted), FirstToken: l.wall(r.first), Finished: l.wall(r.finished),
	}
	if r.finish != engine.NotFinished {
		told.FinishReason = finishReason(r.finish).String()
	}
	return told
}

// wall is an instant in ns since 1970, 0 for none.
func (l *loop) wall(t engine.Time) int64 {
	if t == 0 {
		return 0
	}
	return l.clock.Wall(t).UnixNano()
}

// What a list of requests may be in its JSON form, and one request of it without its texts, in bytes.
const (
	listBytes    = ipc.MaxFrame - 4096
	requestBytes = 640
)

// mostBytes is what r takes at most.
func mostBytes(r *ipc.Request) int {
	return requestBytes + textBytes(r.ID) + textBytes(r.ExternalID) + textBytes(r.LoRA)
}

// textBytes is what a text takes at most: JSON may make six bytes of one that is not a plain character.
func textBytes(s string) int {
	n := len(s)
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || strings.IndexByte(`"\<>&`, c) >= 0 {
			n += 5
		}
	}
	return n
}
