package engineclient

import (
	"fmt"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
)

// serveInput takes an engine's registration at the input of a client, and then watches over the connection: an engine says
// nothing more on it.
func (f *Frontend) serveInput(client int, c *zmtp.Conn) {
	e, err := f.register(client, c)
	if err != nil {
		f.refuse(fmt.Errorf("input %d: %w", client, err))
		return
	}
	for {
		frames, err := c.Recv()
		if err != nil {
			f.left(e, client, c, err)
			return
		}
		f.refuse(fmt.Errorf("input %d: engine %d: message of %d frames after its registration", client, e.rank, len(frames)))
	}
}

func (f *Frontend) register(client int, c *zmtp.Conn) (*engine, error) {
	e, err := f.identified(c)
	if err != nil {
		return nil, err
	}
	frames, err := c.Recv()
	if err != nil {
		return nil, fmt.Errorf("engine %d: registration: %w", e.rank, err)
	}
	if len(frames) != 1 {
		return nil, fmt.Errorf("engine %d: registration of %d frames, want 1", e.rank, len(frames))
	}
	r, err := enginecore.DecodeReady(frames[0])
	if err != nil {
		return nil, fmt.Errorf("engine %d: %w", e.rank, err)
	}
	f.registered(e, client, c, &r)
	return e, nil
}
