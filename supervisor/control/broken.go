package control

import (
	"github.com/valyala/fasthttp"

	"vllm-vcr/httpserve"
)

// broken answers a request that the HTTP server could not read. The connection is closed after it.
func (s *Server) broken(ctx *fasthttp.RequestCtx, err error) {
	status := httpserve.Unreadable(ctx, err)
	switch status {
	case fasthttp.StatusRequestEntityTooLarge:
		err = faultf(status, "body of more than %d bytes, want at most %d", bodyCeiling, bodyLimit)
	case fasthttp.StatusRequestHeaderFieldsTooLarge:
		err = faultf(status, "request line and headers of more than %d bytes", headerLimit)
	case fasthttp.StatusRequestTimeout:
		err = faultf(status, "the request did not arrive within %v", s.http.ReadTimeout)
	default:
		err = faultf(status, "not an HTTP request that can be read")
	}
	s.fail(ctx, err)
}
