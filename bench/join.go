package main

import (
	"context"
	"encoding/binary"
	"errors"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
)

// joined is an engine's end of a frontend: nothing but its sockets.
type joined struct{ hello, in, out *zmtp.Conn }

// join takes an engine of that rank through the handshake. Whoever joined closes it.
func join(ctx context.Context, handshake string, rank int, out zmtp.Options) (j joined, err error) {
	identity := binary.LittleEndian.AppendUint16(nil, uint16(rank))
	defer func() {
		if err != nil {
			j.close(ctx)
		}
	}()
	if j.hello, err = zmtp.Dial(ctx, handshake, zmtp.Options{Type: zmtp.Dealer, Identity: identity}); err != nil {
		return j, err
	}
	if err = j.hello.Send(enginecore.AppendHello(nil, enginecore.Hello{Status: enginecore.StatusHello, Headless: true})); err != nil {
		return j, err
	}
	frames, err := j.hello.Recv()
	if err != nil {
		return j, err
	}
	init, err := enginecore.DecodeInit(frames[0])
	if err != nil {
		return j, err
	}
	if j.in, err = zmtp.Dial(ctx, init.Inputs[0], zmtp.Options{Type: zmtp.Dealer, Identity: identity}); err != nil {
		return j, err
	}
	out.Type = zmtp.Push
	if j.out, err = zmtp.Dial(ctx, init.Outputs[0], out); err != nil {
		return j, err
	}
	return j, errors.Join(
		j.in.Send(enginecore.AppendReady(nil, &enginecore.ReadyResponse{DType: "float32"})),
		j.hello.Send(enginecore.AppendHello(nil, enginecore.Hello{Status: enginecore.StatusReady, Headless: true})))
}

// close ends what is open, without waiting for anybody.
func (j joined) close(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	for _, conn := range []*zmtp.Conn{j.hello, j.in, j.out} {
		if conn != nil {
			_ = conn.Close(ctx) // what is unsent is of no use to anybody
		}
	}
}
