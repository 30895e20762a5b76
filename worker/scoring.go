package worker

import (
	"encoding/binary"
	"math"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/worker/engine"
	"vllm-vcr/worker/logprobs"
)

// scorer fills in what an output says beside its tokens. Its buffers are used for one output at a time.
type scorer struct {
	output, prompt   logprobs.Rows
	outputs, prompts enginecore.Logprobs
	pooled           enginecore.Tensor
	vector           []byte
}

// fill adds the log probabilities of a chunk, and with the first one those of the prompt; to a pooling request its
// vector.
func (s *scorer) fill(out *enginecore.Output, r *engine.Request, c *caller, first bool) {
	if c.pooling {
		out.Pooling = s.pool(c.pooled)
	}
	if c.scores == nil {
		return
	}
	if c.scores.hasOutput {
		out.Logprobs = s.scoreOutput(out.Tokens, r, c.scores)
	}
	if first && c.scores.hasPrompt {
		out.PromptLogprobs = s.scorePrompt(c.scores)
	}
}

func (s *scorer) scoreOutput(tokens []uint32, r *engine.Request, sc *scores) *enginecore.Logprobs {
	s.output.Reset(sc.model, sc.output)
	position := r.Emitted() - uint64(len(tokens))
	for i, token := range tokens {
		s.output.Append(sc.model, position+uint64(i), token)
	}
	s.outputs = tensors(&s.output, "<i4", "<f4")
	return &s.outputs
}

// promptPositions keeps positions of a prompt apart from those of its answer.
const promptPositions = 1 << 63

// scorePrompt says nothing of the first token, which follows nothing.
func (s *scorer) scorePrompt(sc *scores) *enginecore.Logprobs {
	s.prompt.Reset(sc.model, sc.prompt)
	for i := 1; i < len(sc.tokens); i++ {
		s.prompt.Append(sc.model, promptPositions+uint64(i), sc.tokens[i])
	}
	s.prompts = tensors(&s.prompt, "int32", "float32")
	return &s.prompts
}

func tensors(rows *logprobs.Rows, integers, floats string) enginecore.Logprobs {
	table := []int{rows.Count, rows.Width}
	return enginecore.Logprobs{
		TokenIDs: enginecore.Tensor{DType: integers, Shape: table, Data: rows.TokenIDs},
		Logprobs: enginecore.Tensor{DType: floats, Shape: table, Data: rows.Logprobs},
		Ranks:    enginecore.Tensor{DType: integers, Shape: []int{rows.Count}, Data: rows.Ranks},
	}
}

// pooledSize is the length of an embedding.
const pooledSize = 384

// pool makes a vector of length one out of a seed: the same prompt is answered with the same vector.
func (s *scorer) pool(seed uint64) *enginecore.Tensor {
	s.vector = s.vector[:0]
	for range pooledSize {
		seed = seed*6364136223846793005 + 1442695040888963407 // Knuth's MMIX generator
		sign := float32(1 - 2*int(seed>>63))
		s.vector = binary.LittleEndian.AppendUint32(s.vector, math.Float32bits(sign/float32(math.Sqrt(pooledSize))))
	}
	s.pooled = enginecore.Tensor{DType: "float32", Shape: []int{pooledSize}, Data: s.vector}
	return &s.pooled
}
