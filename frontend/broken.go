package frontend

import (
	"errors"
	"net"
	"net/http"

	"github.com/valyala/fasthttp"

	"vllm-vcr/frontend/openai"
	"vllm-vcr/httpserve"
)

// broken answers a request that the HTTP server could not read. The connection is closed after it.
func (s *Server) broken(ctx *fasthttp.RequestCtx, err error) {
	var headers *fasthttp.ErrSmallBuffer
	var timeout net.Error
	answer := openai.HTTP(http.StatusBadRequest, "not an HTTP request that can be read")
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		httpserve.Discard(ctx.Conn())
		answer = openai.HTTP(http.StatusRequestEntityTooLarge, "The request body is larger than the limit of %d bytes.", s.MaxBody)
	case errors.As(err, &headers):
		httpserve.Discard(ctx.Conn())
		answer = openai.HTTP(http.StatusRequestHeaderFieldsTooLarge, "request line and headers of more than %d bytes", headerLimit)
	case errors.As(err, &timeout) && timeout.Timeout():
		answer = openai.HTTP(http.StatusRequestTimeout, "the request did not arrive within %v", readTimeout)
	}
	writeError(ctx, answer)
	ctx.Response.SkipBody = ctx.IsHead()
}
