package dispatch

import (
	"bytes"
	"fmt"
	"time"

	"vllm-vcr/protocol/enginecore"

	"github.com/tinylib/msgp/msgp"
)

// keptCapacity is the number of tokens for which a stream keeps memory between two chunks.
const keptCapacity = 1024

// Chunk is what came for a request since the chunk before: one output of the engine, or several where the consumer was slower.
// Its slices are valid until the next chunk of the stream is taken.
type Chunk struct {
	Tokens         []uint32
	Logprobs       Logprobs // of Tokens, where asked for
	PromptLogprobs Logprobs // of the prompt, with the first chunk where asked for; the prompt's first token has none
	Pooling        []float32
	Finish         enginecore.FinishReason // the last chunk has one
	StopReason     enginecore.StopReason
	Error          *enginecore.RequestError // with FinishError; may be nil even then
	Prefill        enginecore.Optional[enginecore.PrefillStats]
	KVTransfer     msgp.Raw  // nil = none
	Outputs        int       // of the engine
	Received       time.Time // when the last of them was
}

// reset empties the chunk and keeps its memory.
func (c *Chunk) reset() {
	if cap(c.Tokens) > keptCapacity {
		*c = Chunk{}
		return
	}
	*c = Chunk{Tokens: c.Tokens[:0], Logprobs: c.Logprobs.emptied()}
}

// add appends an output, or nothing of it with an error. What it aliases is copied.
func (c *Chunk) add(o *enginecore.Output, aux [][]byte, received time.Time) error {
	logprobs, promptLogprobs, pooling := c.Logprobs, c.PromptLogprobs, c.Pooling
	if o.Logprobs != nil {
		if err := logprobs.add(o.Logprobs, aux); err != nil {
			return err
		}
	}
	if o.PromptLogprobs != nil {
		if err := promptLogprobs.add(o.PromptLogprobs, aux); err != nil {
			return fmt.Errorf("prompt %w", err)
		}
	}
	if o.Pooling != nil {
		var err error
		if pooling, err = appendFloats(nil, o.Pooling, aux); err != nil {
			return fmt.Errorf("pooling output: %w", err)
		}
	}
	c.Logprobs, c.PromptLogprobs, c.Pooling = logprobs, promptLogprobs, pooling
	c.addPlain(o, received)
	return nil
}

func (c *Chunk) addPlain(o *enginecore.Output, received time.Time) {
	c.Tokens = append(c.Tokens, o.Tokens...)
	c.Outputs++
	c.Received = received
	if o.Prefill != nil {
		c.Prefill = enginecore.Some(*o.Prefill)
	}
	if len(o.KVTransfer) > 0 {
		c.KVTransfer = bytes.Clone(o.KVTransfer)
	}
	if o.Finish != enginecore.FinishNone {
		c.Finish, c.StopReason, c.Error = o.Finish, o.StopReason, o.Error
	}
}
