package engine

// Source makes the tokens of answers. It is a pure function: what a request is answered depends on nothing else.
type Source interface {
	// Token returns the token at a position, counted from 0, of the answer to a request with this seed and prompt. It
	// must not keep the prompt.
	Token(seed, position uint64, prompt []uint32) uint32
}

// generate returns the last n of the tokens that r has been handed, valid until the next call.
func (e *Engine) generate(r *Request, n uint64) []uint32 {
	e.tokens = e.tokens[:0]
	if !r.plain && r.Pooling {
		return e.tokens
	}
	for position := r.emitted - n; position < r.emitted; position++ {
		e.tokens = append(e.tokens, e.token(r, position))
	}
	return e.tokens
}

func (e *Engine) token(r *Request, position uint64) uint32 {
	if r.plain { // looks no further than the first cache line of r
		return e.cfg.Source.Token(r.seed, position, nil)
	}
	if position < uint64(len(r.Forced)) {
		return r.Forced[position]
	}
	t := e.cfg.Source.Token(r.seed, position, r.Prompt)
	if r.Avoid != nil {
		return r.Avoid.Next(t)
	}
	return t
}
