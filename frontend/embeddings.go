package frontend

import (
	"math"
	"strconv"

	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/frontend/openai"
	"vllm-vcr/protocol/enginecore"

	"github.com/tinylib/msgp/msgp"
)

// embeddings turns prompts into vectors.
func (s *Server) embeddings(c *call) error {
	var r openai.EmbeddingRequest
	if err := c.decode(&r); err != nil {
		return err
	}
	j, err := s.embed(c, &r)
	if err != nil {
		return err
	}
	vectors, err := j.collectVectors()
	if err != nil {
		return err
	}
	if r.Dimensions != nil {
		if err := cut(vectors, *r.Dimensions); err != nil {
			return err
		}
	}
	answer := openai.Embeddings{Head: j.head, Vectors: vectors, Base64: r.EncodingFormat == openai.EncodingBase64, Prompt: j.usage.Prompt}
	writeJSON(c.ctx, answer.Append(nil))
	return nil
}

func (s *Server) embed(c *call, r *openai.EmbeddingRequest) (*job, error) {
	limits := s.limits()
	if err := r.Check(limits); err != nil {
		return nil, err
	}
	o, err := s.order(c, &r.Common, "embd-")
	if err != nil {
		return nil, err
	}
	prompts, err := s.embedded(r, limits)
	if err != nil {
		return nil, err
	}
	if err := checkVolume(prompts, 1); err != nil {
		return nil, err
	}
	pooling := poolingParams()
	for i, ids := range prompts {
		if len(ids) > limits.MaxModelLen {
			return nil, openai.PromptTooLong(limits.MaxModelLen, limits)
		}
		o.requests = append(o.requests, dispatch.Request{
			Request: enginecore.Request{
				PromptTokens: ids, Pooling: pooling, LoRA: o.lora, CacheSalt: r.CacheSalt,
				Priority: r.Priority, ExternalID: o.head.ID + "-" + strconv.Itoa(i),
			},
			Rank: o.rank, Arrived: o.arrived,
		})
		o.choices = append(o.choices, &choice{})
	}
	return o.submit(s, c)
}

// embedded are the tokens of what is to be embedded.
func (s *Server) embedded(r *openai.EmbeddingRequest, l openai.Limits) ([][]uint32, error) {
	if len(r.Messages) == 0 {
		return s.prompts(&r.Input, r.TruncatePrompt, l)
	}
	chat := openai.ChatRequest{Messages: r.Messages, AddGenerationPrompt: new(bool)}
	chat.TruncatePrompt = r.TruncatePrompt
	ids, err := s.chatPrompt(&chat, l)
	return [][]uint32{ids}, err
}

// collectVectors waits for all vectors.
func (j *job) collectVectors() ([][]float32, error) {
	defer j.end()
	vectors := make([][]float32, len(j.choices))
	for j.left > 0 {
		i, chunk, err := j.streams.Next(j.ctx)
		switch {
		case err != nil:
			return nil, j.cause(err)
		case chunk.Finish == enginecore.FinishError:
			return nil, engineFailure(chunk.Error)
		case chunk.Finish == enginecore.FinishNone:
			continue
		case len(chunk.Pooling) == 0:
			return nil, openai.Internal("The engine's answer has no embedding: it ended with %q.", chunk.Finish)
		}
		vectors[i] = append([]float32(nil), chunk.Pooling...)
		j.left--
	}
	return vectors, nil
}

// cut keeps the first dimensions of vectors, and brings them back to length 1.
func cut(vectors [][]float32, dimensions int64) error {
	for i, v := range vectors {
		if dimensions > int64(len(v)) {
			return openai.BadRequest("dimensions", "dimensions is %d, and the model has %d.", dimensions, len(v))
		}
		vectors[i] = v[:dimensions]
		normalize(vectors[i])
	}
	return nil
}

func normalize(v []float32) {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(sum))
	}
}

// poolingParams is vLLM's PoolingParams for an embedding: an array whose element 4 is the task, and whose element 9 says that only
// the end is wanted.
func poolingParams() msgp.Raw {
	b := msgp.AppendArrayHeader(nil, 11)
	for i := range 11 {
		switch i {
		case 4:
			b = msgp.AppendString(b, "embed")
		case 5:
			b = msgp.AppendBool(b, false)
		case 9:
			b = msgp.AppendUint64(b, uint64(enginecore.OutputFinalOnly))
		default:
			b = msgp.AppendNil(b)
		}
	}
	return b
}
