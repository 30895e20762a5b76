package httpserve

import (
	"errors"
	"net"

	"github.com/valyala/fasthttp"
)

// Unreadable returns the status for a request that fasthttp gave up reading with err: 413, 431, 408 or 400. It reads the rest
// of one that is too large, and leaves the body out of the answer to a HEAD. The connection is closed after the answer.
func Unreadable(ctx *fasthttp.RequestCtx, err error) int {
	var headers *fasthttp.ErrSmallBuffer
	var timeout net.Error
	ctx.Response.SkipBody = ctx.IsHead()
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		discard(ctx.Conn())
		return fasthttp.StatusRequestEntityTooLarge
	case errors.As(err, &headers):
		discard(ctx.Conn())
		return fasthttp.StatusRequestHeaderFieldsTooLarge
	case errors.As(err, &timeout) && timeout.Timeout():
		return fasthttp.StatusRequestTimeout
	}
	return fasthttp.StatusBadRequest
}
