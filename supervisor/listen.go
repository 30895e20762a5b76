package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
)

// listen reads what a process says until its socket ends, and then waits for the end of the process itself. Where Run has
// ended, which then ends all processes, nobody is left to tell.
func (f *Fleet) listen(m *member, p *process) {
	fault := f.hear(m, p)
	p.hangUp()
	_ = f.send(context.Background(), hungUpEvent{m, fault})
	ending := p.wait()
	_ = f.send(context.Background(), endedEvent{m, p, fault, ending})
}

// hear returns nil at the end of the socket, or what is wrong with a frame.
func (f *Fleet) hear(m *member, p *process) error {
	var buf []byte
	for {
		var frame ipc.Frame
		var err error
		frame, buf, err = ipc.ReadFrame(p.conn, buf)
		if errors.Is(err, ipc.ErrFrameSize) {
			return err
		}
		if err != nil {
			return nil
		}
		e, err := decodeFrame(m, frame)
		if err != nil {
			return err
		}
		if f.send(context.Background(), e) != nil {
			return nil
		}
	}
}

// decodeFrame makes an event of a frame, which it doesn't keep.
func decodeFrame(m *member, frame ipc.Frame) (event, error) {
	e := frameEvent{m: m, kind: frame.Kind, call: frame.Call}
	switch frame.Kind {
	case ipc.KindHello:
		var hello ipc.Hello
		if err := frame.Decode(&hello); err != nil {
			return nil, err
		}
		return e, hello.Check()
	case ipc.KindState:
		if err := frame.Decode(&e.state); err != nil {
			return nil, err
		}
		return e, e.state.Check()
	case ipc.KindAnswer:
		return e, frame.Decode(&e.answer)
	default:
		return nil, fmt.Errorf("frame kind %d, want hello, state or answer", frame.Kind)
	}
}

// frameEvent is something that a member's process said. That process is the present one: its end is an event too, and
// comes behind all that it said.
type frameEvent struct {
	m      *member
	kind   ipc.Kind
	call   uint64
	state  ipc.State
	answer ipc.Answer
}

func (e frameEvent) apply(f *Fleet) {
	m := e.m
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
	if m.state != StateDraining || s.State == StateDrained { // how it stands with its frontend changes nothing about a drain
		m.state = s.State
	}
	f.log.Debug().Int("engine", m.index).Str("state", s.State).Msg("engine state")
	switch s.State {
	case ipc.StateReady:
		m.addresses, m.joined, m.joinedOnce = s.Addresses, s.Joined, true
		f.joined()
	case ipc.StateDrained:
		m.joinedOnce = true
		f.joined()
	}
	if lost && f.cfg.OnFrontendLoss == config.LossExit {
		f.fail(fmt.Errorf("%s: %w", name(m.index, m.rank), errFrontendLost))
	}
}

// joined ends the start-up once every engine has been ready.
func (f *Fleet) joined() {
	if f.startup == nil || len(f.unready()) > 0 {
		return
	}
	f.startup = nil
	f.log.Info().Int("engines", len(f.members)).Msg("every engine is ready")
}

// hungUpEvent is the end of the socket to a process, which should follow soon.
type hungUpEvent struct {
	m     *member
	fault error // nonsense it talked, nil = none
}

func (e hungUpEvent) apply(f *Fleet) {
	p := e.m.process
	p.left, e.m.greeted = true, false
	p.impatient = time.AfterFunc(f.leaveGrace(e), p.kill)
}

// leaveGrace is how long a process may stay. One that has drained hands its last outputs to slow readers.
func (f *Fleet) leaveGrace(e hungUpEvent) time.Duration {
	switch {
	case e.fault != nil:
		return 0
	case f.draining || e.m.state == StateDraining:
		return f.timing.killGrace
	}
	return f.timing.leaveGrace
}

// endedEvent is the end of a process.
type endedEvent struct {
	m      *member
	p      *process
	fault  error // nonsense it talked, nil = none
	ending string
}

func (e endedEvent) apply(f *Fleet) {
	e.p.impatient.Stop()
	f.died(e.m, e.reason(), errors.Is(e.fault, ipc.ErrVersion))
}

// reason begins with why the supervisor ended it, where it did.
func (e endedEvent) reason() string {
	switch {
	case e.p.blame != "":
		return e.p.blame + "; " + e.ending
	case e.fault != nil:
		return e.fault.Error() + "; " + e.ending
	}
	return e.ending
}
