package engineclient

import (
	"context"
	"fmt"
	"sync"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"

	"github.com/tinylib/msgp/msgp"
)

// Client sends to the engines' inputs of one index, as one API server process of vLLM does. It is part of a Frontend; all
// methods may be called from any goroutine. None but Utility waits: a message is queued for the engine or refused. The error
// wraps ErrNotConnected where the engine is not registered.
type Client struct {
	frontend *Frontend
	index    int

	mu  sync.Mutex
	buf []byte // of the message that is being encoded
}

// The frames that tell what a message is.
var (
	frameAdd     = []byte{enginecore.FrameAdd}
	frameAbort   = []byte{enginecore.FrameAbort}
	frameUtility = []byte{enginecore.FrameUtility}
)

// Add sends a request to the engine of that rank, with this client's index in place of r.ClientIndex. r isn't kept.
// aux are the frames that r's tensors refer to.
func (c *Client) Add(rank int, r *enginecore.Request, aux ...[]byte) error {
	own := *r
	own.ClientIndex = uint32(c.index)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = enginecore.AppendRequest(c.buf[:0], c.frontend.options.Version, &own)
	return c.AddEncoded(rank, c.buf, aux...)
}

// AddEncoded sends a request that was encoded by [enginecore.AppendRequest], whose client index must be this client's. The
// payload isn't kept.
func (c *Client) AddEncoded(rank int, payload []byte, aux ...[]byte) error {
	if len(aux) == 0 {
		return c.send(rank, frameAdd, payload)
	}
	return c.send(rank, append([][]byte{frameAdd, payload}, aux...)...)
}

// Abort tells an engine to give up requests. It may know them no more.
func (c *Client) Abort(rank int, ids ...string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = enginecore.AppendAbort(c.buf[:0], ids)
	return c.send(rank, frameAbort, c.buf)
}

// Utility calls a method of an engine and waits for the answer, which is nil from a method without a result. args is an
// array of msgpack, nil for none. The error is a [*CallError] if the engine refused, wraps ErrNotConnected if it was lost, and
// zmtp.ErrClosed if the frontend was closed. It must not be called from an event.
func (c *Client) Utility(ctx context.Context, rank int, method string, args msgp.Raw) (msgp.Raw, error) {
	calls := &c.frontend.calls
	id, replyC := calls.add(rank, c.index, method)
	defer calls.forget(id)
	payload := enginecore.AppendUtility(nil, enginecore.UtilityCall{ClientIndex: uint32(c.index), CallID: id, Method: method, Args: args})
	if err := c.send(rank, frameUtility, payload); err != nil {
		return nil, fmt.Errorf("call %s: %w", method, err)
	}
	select {
	case r := <-replyC:
		if r.err != nil {
			return nil, fmt.Errorf("call engine %d: %w", rank, r.err)
		}
		return r.value, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("call engine %d: %s: %w", rank, method, context.Cause(ctx))
	}
}

// Queued is the number of bytes that wait for an engine to read them; 0 if it is not registered.
func (c *Client) Queued(rank int) int64 {
	conn, err := c.conn(rank)
	if err != nil {
		return 0
	}
	return conn.Queued()
}

// conn is the engine's connection to this client's input.
func (c *Client) conn(rank int) (*zmtp.Conn, error) {
	engines := c.frontend.engines
	if rank < 0 || rank >= len(engines) {
		return nil, fmt.Errorf("engine %d: want 0 to %d", rank, len(engines)-1)
	}
	conn := engines[rank].inputs[c.index].Load()
	if conn == nil {
		return nil, fmt.Errorf("engine %d: input %d: %w", rank, c.index, ErrNotConnected)
	}
	return conn, nil
}

func (c *Client) send(rank int, frames ...[]byte) error {
	conn, err := c.conn(rank)
	if err != nil {
		return err
	}
	if err := conn.Send(frames...); err != nil {
		return fmt.Errorf("engine %d: input %d: %w: %w", rank, c.index, ErrNotConnected, err)
	}
	return nil
}
