package engineclient

import (
	"fmt"
	"time"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
)

// Delivery is one message of an engine. Whoever wants to keep something of it copies it.
type Delivery struct {
	Client   int                 // index of the output that it came over
	Received time.Time           // when it had been read, before it was decoded
	Bytes    int                 // of all frames
	Outputs  *enginecore.Outputs // with the rank of the engine, which is one of those awaited
	Aux      [][]byte            // the frames behind the message: data of tensors, by [enginecore.Tensor.Frame] less one
}

// serveOutput hands out what comes over one connection to the output of a client. All messages are decoded into the same
// memory.
func (f *Frontend) serveOutput(client int, c *zmtp.Conn) {
	rank := -1
	endedC := make(chan struct{})
	defer close(endedC)
	d := Delivery{Client: client, Outputs: &enginecore.Outputs{Version: f.options.Version}}
	for {
		frames, err := c.Recv()
		if err != nil {
			return
		}
		d.Received = time.Now()
		if len(frames) == 1 && string(frames[0]) == enginecore.EngineCoreDead {
			f.dead(client, rank)
			continue
		}
		if err := f.decode(frames, d.Outputs); err != nil {
			f.refuse(fmt.Errorf("output %d: %w", client, err))
			continue
		}
		if from := int(d.Outputs.EngineIndex); from != rank {
			rank = from
			f.engines[rank].speaks(client, endedC)
		}
		d.Aux, d.Bytes = frames[1:], size(frames)
		f.deliver(&d)
	}
}

func (f *Frontend) decode(frames [][]byte, o *enginecore.Outputs) error {
	if err := enginecore.DecodeOutputs(frames[0], o); err != nil {
		return err
	}
	if o.EngineIndex >= uint32(len(f.engines)) {
		return fmt.Errorf("outputs: engine_index %d, want 0 to %d", o.EngineIndex, len(f.engines)-1)
	}
	return nil
}

// deliver gives an answer to whoever waits for it, and everything else to the user.
func (f *Frontend) deliver(d *Delivery) {
	if d.Outputs.Utility != nil && f.calls.answer(d.Outputs.Utility) {
		return
	}
	if f.options.Outputs != nil {
		f.options.Outputs(d)
	}
}

func (f *Frontend) dead(client, rank int) {
	if f.options.Dead != nil {
		f.options.Dead(client, rank)
	}
}

func size(frames [][]byte) int {
	n := 0
	for _, b := range frames {
		n += len(b)
	}
	return n
}
