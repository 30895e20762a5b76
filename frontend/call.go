package frontend

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"vllm-vcr/frontend/metrics"
	"vllm-vcr/frontend/openai"
	"vllm-vcr/httpserve"
)

const (
	requestIDHeader = "X-Request-Id"
	rankHeader      = "X-data-parallel-rank"
)

// call is one call of the API. Its ctx is the handler's only: what lives longer has the rest.
type call struct {
	ctx       *fasthttp.RequestCtx
	server    *Server
	method    string
	route     string
	requestID string // as the client names it; "" = not at all
	arrived   time.Time
	bodyBytes int  // of the request
	inTurn    bool // it holds one of the server's turns
	streamed  bool // the answer is still being made when the handler returns, and ends the call itself
}

// answer makes a handler into one of fasthttp's.
func (s *Server) answer(route string, h handler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		c := &call{
			ctx: ctx, server: s, route: route, arrived: time.Now(), method: string(ctx.Method()),
			requestID: string(ctx.Request.Header.Peek(requestIDHeader)), bodyBytes: len(ctx.PostBody()),
		}
		c.repeatRequestID()
		if err := c.run(h); err != nil {
			writeError(ctx, failure(err))
			if errors.Is(err, errGone) {
				ctx.SetConnectionClose()
			}
		}
		if !c.streamed {
			c.ended(ctx.Response.StatusCode())
		}
	}
}

func (c *call) run(h handler) (err error) {
	defer c.recover(&err)
	if err := httpserve.CheckFraming(c.ctx); err != nil {
		return openai.HTTP(http.StatusBadRequest, "%v", err)
	}
	if err := c.server.checkKey(c.ctx); err != nil {
		return err
	}
	if len(c.requestID) > maxRequestID {
		return openai.BadRequest(requestIDHeader, "%s has %d bytes, want at most %d.", requestIDHeader, len(c.requestID), maxRequestID)
	}
	return h(c.server, c)
}

// maxRequestID bounds the id that a client gives its request, in bytes.
const maxRequestID = 256

// recover turns a panic into a 500 of its one call.
func (c *call) recover(err *error) {
	reason := recover()
	if reason == nil {
		return
	}
	c.server.log.Error().Str("panic", fmt.Sprint(reason)).Bytes("stack", debug.Stack()).Msg("call panicked")
	*err = openai.Internal("The handler of this call panicked; the log has the stack.")
}

func (c *call) repeatRequestID() {
	if !c.server.RequestIDHeaders {
		return
	}
	id := c.requestID
	if id == "" {
		id = randomID()
	}
	c.ctx.Response.Header.Set(requestIDHeader, id)
}

// ended tells of the call, before its last bytes leave.
func (c *call) ended(status int) {
	took := time.Since(c.arrived)
	if m := c.server.Metrics; m != nil {
		m.HTTP(metrics.Exchange{
			Route: c.route, Method: c.method, Status: status, Took: took, RequestBytes: c.bodyBytes, ResponseBytes: c.answerBytes(),
		})
	}
	c.server.log.Debug().Str("method", c.method).Str("route", c.route).Int("status", status).Dur("took", took).Msg("call")
}

// answerBytes is the length of the answer's body; -1 for a stream, whose call may have no ctx any more.
func (c *call) answerBytes() int {
	if c.streamed {
		return -1
	}
	return len(c.ctx.Response.Body())
}

// decode reads the body.
func (c *call) decode(into any) error {
	if err := checkContentType(c.ctx); err != nil {
		return err
	}
	return openai.Decode(c.ctx.PostBody(), into)
}

// rank is the engine that the client wants.
func (c *call) rank() (rank int, set bool, err error) {
	value := string(c.ctx.Request.Header.Peek(rankHeader))
	if value == "" {
		return 0, false, nil
	}
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return 0, false, openai.BadRequest(rankHeader, "%s is %.100q, want the number of an engine.", rankHeader, value)
	}
	return int(n), true, nil
}

// deadline is the context of a call of the engines that is no request.
func (c *call) deadline() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.server.gate.life, callTimeout)
}

// id names the answer: the client's name for it or one of ours, behind prefix.
func (c *call) id(prefix, body string) string {
	switch {
	case c.requestID != "":
		return prefix + c.requestID
	case body != "":
		return prefix + body
	default:
		return prefix + randomID()
	}
}

// randomID is 16 hexadecimal digits.
func randomID() string { return fmt.Sprintf("%016x", rand.Uint64()) }

func writeJSON(ctx *fasthttp.RequestCtx, body []byte) {
	ctx.SetStatusCode(http.StatusOK)
	ctx.SetContentType("application/json")
	ctx.Response.SetBodyRaw(body)
}

func writeError(ctx *fasthttp.RequestCtx, e *openai.Error) {
	ctx.SetStatusCode(e.Status)
	ctx.SetContentType("application/json")
	ctx.Response.SetBodyRaw(e.Append(nil))
}
