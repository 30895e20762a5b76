package openai

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"
)

// Embeddings is the answer of POST /v1/embeddings.
type Embeddings struct {
	Head
	Vectors [][]float32
	Base64  bool // of little-endian floats, instead of lists
	Prompt  int  // tokens
}

// Append appends the answer.
func (e *Embeddings) Append(b []byte) []byte {
	b = e.Head.append(b, "list")
	b = append(b, `,"data":[`...)
	for i, vector := range e.Vectors {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"index":`...)
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, `,"object":"embedding","embedding":`...)
		if e.Base64 {
			b = appendBase64(b, vector)
		} else {
			b = appendVector(b, vector)
		}
		b = append(b, '}')
	}
	b = append(b, `],"usage":{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(e.Prompt), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(e.Prompt), 10)
	return append(b, `,"completion_tokens":0,"prompt_tokens_details":null}}`...)
}

func appendVector(b []byte, vector []float32) []byte {
	b = append(b, '[')
	for i, v := range vector {
		if i > 0 {
			b = append(b, ',')
		}
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			v = 0
		}
		b = appendFloat(b, float64(v), 32)
	}
	return append(b, ']')
}

func appendBase64(b []byte, vector []float32) []byte {
	raw := make([]byte, 0, 4*len(vector))
	for _, v := range vector {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, raw)
	return append(b, '"')
}
