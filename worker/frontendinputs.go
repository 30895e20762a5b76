package worker

import (
	"vllm-vcr/protocol/zmtp"
	"vllm-vcr/worker/engine"
)

// What the frontend's actor tells the loop.

// connectedInput gives the loop the sockets of a session that is complete.
type connectedInput struct {
	outs  []*zmtp.Conn
	coord *zmtp.Conn
}

func (in connectedInput) apply(l *loop, _ engine.Time) { l.outputs.connect(in.outs, in.coord) }

// foundInput gives the loop a client's sockets after they were lost.
type foundInput struct {
	client int
	out    *zmtp.Conn
}

func (in foundInput) apply(l *loop, _ engine.Time) { l.outputs.clients[in.client].conn = in.out }

// lostInput tells the loop that a client is gone: its requests are aborted.
type lostInput struct{ client int }

func (in lostInput) apply(l *loop, now engine.Time) {
	if in.client < len(l.outputs.clients) {
		l.outputs.clients[in.client].conn = nil
	}
	l.engine.AbortClient(now, uint32(in.client))
}

// coordinatorLostInput tells the loop to send a coordinator nothing more.
type coordinatorLostInput struct{ out *zmtp.Conn }

func (in coordinatorLostInput) apply(l *loop, _ engine.Time) {
	if l.outputs.coord == in.out {
		l.outputs.coord = nil
	}
}

// lowWaterInput tells the loop that a client has read enough to be handed more.
type lowWaterInput struct{ client int }

func (in lowWaterInput) apply(l *loop, _ engine.Time) { l.engine.Release(uint32(in.client)) }
