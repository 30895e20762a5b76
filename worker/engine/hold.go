package engine

import (
	"cmp"
	"slices"
)

// client is one API server of the frontend, as far as its reading goes.
type client struct {
	full bool       // its reader is behind: what falls due is only counted
	held []*Request // requests with tokens that fell due and were not handed over
	gone int        // those of held that have been aborted
}

// client returns the state of client i, making it at first sight. The pointer is valid until the next call.
func (e *Engine) client(i uint32) *client {
	for int(i) >= len(e.clients) {
		e.clients = append(e.clients, client{})
	}
	return &e.clients[i]
}

// holds says that r's chunk has to wait: for its reader, or behind tokens that are held already.
func (e *Engine) holds(r *Request) bool {
	c := e.client(r.Client)
	if !c.full && e.sink.Full(r.Client) {
		c.full = true
	}
	return c.full || r.held
}

func (e *Engine) hold(r *Request) {
	if r.held {
		e.counts.Merged++
		return
	}
	r.held = true
	c := e.client(r.Client)
	c.held = append(c.held, r)
}

// drop forgets r, of which something is held. A list that is mostly of such is cleared of them.
func (e *Engine) drop(r *Request) {
	c := e.client(r.Client)
	if c.gone++; 2*c.gone > len(c.held) {
		c.held, c.gone = slices.DeleteFunc(c.held, func(r *Request) bool { return r.state == gone }), 0
	}
}

// Holding says that some output waits for a client's reader.
func (e *Engine) Holding() bool {
	for i := range e.clients {
		if e.clients[i].full {
			return true
		}
	}
	return false
}

// Release says that a client's reader has caught up. What was held for it leaves with the next steps.
func (e *Engine) Release(client uint32) { e.client(client).full = false }

func (e *Engine) canHandHeld() bool {
	for i := range e.clients {
		if !e.clients[i].full && len(e.clients[i].held) > 0 {
			return true
		}
	}
	return false
}

// handHeld hands over one output of every held request whose client has room again.
func (e *Engine) handHeld() {
	for i := range e.clients {
		if c := &e.clients[i]; len(c.held) > 0 && !c.full {
			e.handHeldOf(uint32(i), c)
		}
	}
}

func (e *Engine) handHeldOf(index uint32, c *client) {
	rest := c.held[:0]
	for _, r := range c.held {
		if r.state == gone {
			continue
		}
		if r.failing && r.emitted == r.generated {
			e.failRunning(r)
			continue
		}
		if c.full = c.full || e.sink.Full(index); !c.full {
			e.hand(r, min(cmp.Or(r.MaxHeld, maxHeldTokens), maxHeldTokens, r.generated-r.emitted))
		}
		if r.held = r.emitted < r.generated || r.failing; r.held {
			rest = append(rest, r)
		}
	}
	clear(c.held[len(rest):])
	c.held, c.gone = rest, 0
}
