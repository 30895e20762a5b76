package engine

// grow has r hold KV blocks for n more tokens of its prompt or its answer. Nothing is refused for want of blocks.
func (e *Engine) grow(r *Request, n uint64) {
	if n <= r.room {
		r.room -= n
		return
	}
	more := (n - r.room + e.cfg.BlockSize - 1) / e.cfg.BlockSize
	r.room += more*e.cfg.BlockSize - n
	r.blocks += more
	e.blocks += more
}

// release gives back the blocks of a request that has ended.
func (e *Engine) release(r *Request) {
	e.blocks -= r.blocks
	r.blocks, r.room = 0, 0
}
