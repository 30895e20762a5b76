package frontend

import (
	"net/http"

	"github.com/valyala/fasthttp"

	"vllm-vcr/frontend/openai"
	"vllm-vcr/httpserve"
)

// broken answers a request that the HTTP server could not read. The connection is closed after it.
func (s *Server) broken(ctx *fasthttp.RequestCtx, err error) {
	status := httpserve.Unreadable(ctx, err)
	answer := openai.HTTP(status, "not an HTTP request that can be read")
	switch status {
	case http.StatusRequestEntityTooLarge:
		answer = openai.HTTP(status, "The request body is larger than the limit of %d bytes.", s.MaxBody)
	case http.StatusRequestHeaderFieldsTooLarge:
		answer = openai.HTTP(status, "request line and headers of more than %d bytes", headerLimit)
	case http.StatusRequestTimeout:
		answer = openai.HTTP(status, "the request did not arrive within %v", s.http.ReadTimeout)
	}
	writeError(ctx, answer)
}
