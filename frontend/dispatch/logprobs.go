package dispatch

import (
	"fmt"

	"vllm-vcr/protocol/enginecore"
)

// Logprobs are log probabilities of consecutive tokens. Row i belongs to token i and has Width entries: first the token that is
// there, then the most likely ones in order. The zero value has no rows.
type Logprobs struct {
	Width  int
	Tokens []uint32  // rows × Width
	Values []float32 // rows × Width
	Ranks  []uint32  // rows: of the token that is there, 1 = the most likely
}

// Rows is the number of tokens.
func (l *Logprobs) Rows() int { return len(l.Ranks) }

// Row is the entries of token i.
func (l *Logprobs) Row(i int) (tokens []uint32, values []float32) {
	from, to := i*l.Width, (i+1)*l.Width
	return l.Tokens[from:to:to], l.Values[from:to:to]
}

func (l *Logprobs) emptied() Logprobs {
	return Logprobs{Tokens: l.Tokens[:0], Values: l.Values[:0], Ranks: l.Ranks[:0]}
}

// add appends the rows of an output. On an error l is as it was.
func (l *Logprobs) add(from *enginecore.Logprobs, aux [][]byte) error {
	rows, width, err := shapeOf(from)
	if err != nil {
		return fmt.Errorf("logprobs: %w", err)
	}
	if rows == 0 {
		return nil
	}
	if l.Rows() > 0 && width != l.Width {
		return fmt.Errorf("logprobs: rows of %d after rows of %d", width, l.Width)
	}
	tokens, err := appendInts(l.Tokens, &from.TokenIDs, aux)
	if err != nil {
		return fmt.Errorf("logprobs: token ids: %w", err)
	}
	values, err := appendFloats(l.Values, &from.Logprobs, aux)
	if err != nil {
		return fmt.Errorf("logprobs: values: %w", err)
	}
	ranks, err := appendInts(l.Ranks, &from.Ranks, aux)
	if err != nil {
		return fmt.Errorf("logprobs: ranks: %w", err)
	}
	*l = Logprobs{Width: width, Tokens: tokens, Values: values, Ranks: ranks}
	return nil
}

// shapeOf checks that the three tensors belong together.
func shapeOf(l *enginecore.Logprobs) (rows, width int, err error) {
	ids, values, ranks := l.TokenIDs.Shape, l.Logprobs.Shape, l.Ranks.Shape
	if len(ids) != 2 || len(values) != 2 || len(ranks) != 1 {
		return 0, 0, fmt.Errorf("shapes %v, %v and %v, want two of two dimensions and one of one", ids, values, ranks)
	}
	if ids[0] != values[0] || ids[1] != values[1] || ids[0] != ranks[0] {
		return 0, 0, fmt.Errorf("shapes %v, %v and %v don't match", ids, values, ranks)
	}
	if ids[0] > 0 && ids[1] == 0 {
		return 0, 0, fmt.Errorf("%d rows of nothing", ids[0])
	}
	return ids[0], ids[1], nil
}
