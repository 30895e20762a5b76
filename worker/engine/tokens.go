package engine

import "slices"

// generate returns the next n tokens of r, valid until the next call.
func (e *Engine) generate(r *Request, n uint64) []uint32 {
	e.tokens = e.tokens[:0]
	if r.Pooling {
		return e.tokens
	}
	first := r.emitted - n
	for position := first; position < r.emitted; position++ {
		e.tokens = append(e.tokens, e.token(r, position))
	}
	return e.tokens
}

func (e *Engine) token(r *Request, position uint64) uint32 {
	if position < uint64(len(r.Forced)) {
		return r.Forced[position]
	}
	t := e.cfg.Source.Token(r.seed, position, r.Prompt)
	for range r.Avoid { // of more tokens than there are to avoid, one is good
		if !slices.Contains(r.Avoid, t) {
			break
		}
		t = (t + 1) % e.cfg.VocabSize
	}
	return t
}
