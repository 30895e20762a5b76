package httpserve

import (
	"github.com/valyala/fasthttp"

	"vllm-vcr/logs"
)

// Harden gives s what both servers want of fasthttp: it keeps track of connections, spends no more memory on a body that it
// refuses than MaxRequestBodySize, tells nothing of itself, wakes no idle process, and takes lines about broken requests to log
// at level debug. The handler of s is called with the whole request; ctx.Time is when its headers had come.
func Harden(s *fasthttp.Server, conns *Connections, log *logs.Logger) {
	handle := s.Handler
	s.Handler = func(ctx *fasthttp.RequestCtx) {
		last := conns.work(ctx.Conn())
		handle(ctx)
		if last {
			ctx.SetConnectionClose()
		}
	}
	takeBodies(s)
	s.ConnState = conns.note
	s.DisablePreParseMultipartForm = true
	s.NoDefaultServerHeader = true
	s.NoDefaultDate = true // it would take a timer that wakes an idle process every second
	s.SecureErrorLogMessage = true
	s.Logger = debugLog{log}
}

// debugLog takes fasthttp's own lines, which any client can cause.
type debugLog struct{ log *logs.Logger }

// Printf writes one line.
func (l debugLog) Printf(format string, args ...any) { l.log.Debug().Msgf(format, args...) }
