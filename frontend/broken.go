package frontend

import (
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"

	"vllm-vcr/frontend/openai"
)

// What is read of a request that is refused before its end. A client that still sends when the connection is closed gets a
// reset and never sees the answer.
const (
	drainBytes   = 64 << 20
	drainTimeout = 2 * time.Second
	drainSilence = 100 * time.Millisecond // one that sends nothing for so long waits for the answer
)

// broken answers a request that the HTTP server could not read. The connection is closed after it.
func (s *Server) broken(ctx *fasthttp.RequestCtx, err error) {
	var headers *fasthttp.ErrSmallBuffer
	var timeout net.Error
	answer := openai.HTTP(http.StatusBadRequest, "not an HTTP request that can be read")
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		discard(ctx.Conn())
		answer = openai.HTTP(http.StatusRequestEntityTooLarge, "The request body is larger than the limit of %d bytes.", s.MaxBody)
	case errors.As(err, &headers):
		discard(ctx.Conn())
		answer = openai.HTTP(http.StatusRequestHeaderFieldsTooLarge, "request line and headers of more than %d bytes", headerLimit)
	case errors.As(err, &timeout) && timeout.Timeout():
		answer = openai.HTTP(http.StatusRequestTimeout, "the request did not arrive within %v", readTimeout)
	}
	writeError(ctx, answer)
	ctx.Response.SkipBody = ctx.IsHead()
}

func discard(conn net.Conn) {
	buf := make([]byte, 64<<10)
	end := time.Now().Add(drainTimeout)
	for left := drainBytes; left > 0 && time.Now().Before(end); {
		if err := conn.SetReadDeadline(time.Now().Add(drainSilence)); err != nil {
			return
		}
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		left -= n
	}
}
