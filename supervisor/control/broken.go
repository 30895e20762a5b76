package control

import (
	"errors"
	"net"

	"github.com/valyala/fasthttp"

	"vllm-vcr/httpserve"
)

// broken answers a request that the HTTP server could not read. The connection is closed after it.
func (s *Server) broken(ctx *fasthttp.RequestCtx, err error) {
	var headers *fasthttp.ErrSmallBuffer
	var timeout net.Error
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		httpserve.Discard(ctx.Conn())
		err = faultf(fasthttp.StatusRequestEntityTooLarge, "body of more than %d bytes, want at most %d", bodyCeiling, bodyLimit)
	case errors.As(err, &headers):
		httpserve.Discard(ctx.Conn())
		err = faultf(fasthttp.StatusRequestHeaderFieldsTooLarge, "request line and headers of more than %d bytes", headerLimit)
	case errors.As(err, &timeout) && timeout.Timeout():
		err = faultf(fasthttp.StatusRequestTimeout, "the request did not arrive within %v", s.http.ReadTimeout)
	default:
		err = faultf(fasthttp.StatusBadRequest, "not an HTTP request that can be read")
	}
	s.fail(ctx, err)
	ctx.Response.SkipBody = ctx.IsHead()
}
