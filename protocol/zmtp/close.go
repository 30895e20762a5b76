package zmtp

import (
	"context"
	"fmt"
	"io"
	"time"
)

// lingerTime bounds the wait for the peer to read to our end of the stream.
const lingerTime = 500 * time.Millisecond

// Close refuses further messages, writes what is queued until ctx ends, and
// ends the connection. When it returns, no goroutine of the connection is left
// and Recv has returned or is about to. It may be called more than once and
// from several goroutines. The error, if any, tells how many bytes were left
// unsent and why. A ctx that has ended already closes at once.
//
// Having flushed, Close shuts its half of the stream down and reads on for at
// most half a second, until the peer has closed its own: a socket closed over unread
// bytes is reset, and the reset would overtake what was just written.
func (c *Conn) Close(ctx context.Context) error {
	c.closing.Store(true)
	c.out.seal(ErrClosed)
	reason := ErrClosed
	select {
	case <-c.writtenC:
		c.linger(ctx)
	case <-ctx.Done():
		reason = fmt.Errorf("%w: %w", ErrClosed, context.Cause(ctx))
	}
	c.end(reason)
	c.running.Wait()
	if n := c.out.unsent(); n > 0 {
		return fmt.Errorf("%s: close: %d bytes unsent: %w", c.address, n, c.err)
	}
	return nil
}

// linger ends our half of the stream and reads, and throws away, until the peer
// has ended its own.
func (c *Conn) linger(ctx context.Context) {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || c.out.accepted() == 0 || c.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lingerTime)
	defer cancel()
	past := time.Unix(1, 0)
	_ = c.nc.SetReadDeadline(past) // sends a goroutine that is in Recv away; on a closed connection it is gone already
	c.recvMu.Lock()
	defer c.recvMu.Unlock()
	_ = c.nc.SetReadDeadline(time.Time{})
	defer context.AfterFunc(ctx, func() { _ = c.nc.SetReadDeadline(past) })()
	if half.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, c.nc) // however it ends, so does the connection
	}
}

// end ends the connection now. The first reason stays.
func (c *Conn) end(err error) {
	c.endOnce.Do(func() {
		c.err = err
		c.out.kill(err)
		_ = c.nc.Close() // nothing is left to be flushed
		close(c.endC)
	})
}

// abort ends the connection for the given reason, without flushing, and waits
// for its goroutines.
func (c *Conn) abort(reason error) {
	c.end(reason)
	c.running.Wait()
}
