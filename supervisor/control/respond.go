package control

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/goccy/go-json"
	"github.com/valyala/fasthttp"

	"vllm-vcr/logs"
	"vllm-vcr/supervisor"
)

// fault is an error that the API itself finds, with the status it is answered with.
type fault struct {
	status int
	text   string
}

func (f *fault) Error() string { return f.text }

func faultf(status int, format string, args ...any) error {
	return &fault{status, fmt.Sprintf(format, args...)}
}

// verdict is a body with a status of its own.
type verdict struct {
	status int
	body   any
}

// page is a body that is not JSON.
type page struct {
	contentType string
	body        []byte
}

// errorBody is the one shape of an error.
type errorBody struct {
	Error string `json:"error"`
}

// answer makes a handler into one that writes what it returns.
func (s *Server) answer(h handler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		value, err := h(ctx)
		if err != nil {
			s.fail(ctx, err)
			return
		}
		switch v := value.(type) {
		case nil:
			ctx.SetStatusCode(fasthttp.StatusNoContent)
		case page:
			ctx.SetContentType(v.contentType)
			ctx.SetBody(v.body)
		case verdict:
			writeJSON(ctx, v.status, v.body)
		default:
			writeJSON(ctx, fasthttp.StatusOK, v)
		}
	}
}

func (s *Server) fail(ctx *fasthttp.RequestCtx, err error) {
	status, text := statusOf(err), err.Error()
	if status == fasthttp.StatusGatewayTimeout && errors.Is(err, context.DeadlineExceeded) {
		text = fmt.Sprintf("no answer within %v: %v", s.timeout, err)
	}
	writeJSON(ctx, status, errorBody{text})
}

// statusOf is the one place where errors become status codes.
func statusOf(err error) int {
	var own *fault
	var refused *supervisor.RefusedError
	var silent *supervisor.SilentError
	switch {
	case errors.As(err, &own):
		return own.status
	case errors.Is(err, logs.ErrFilter):
		return fasthttp.StatusBadRequest
	case errors.Is(err, supervisor.ErrNoFault):
		return fasthttp.StatusNotFound
	case errors.As(err, &refused), errors.Is(err, supervisor.ErrTooManyFaults):
		return fasthttp.StatusConflict
	case errors.As(err, &silent), errors.Is(err, context.DeadlineExceeded):
		return fasthttp.StatusGatewayTimeout
	default: // also *supervisor.GoneError
		return fasthttp.StatusInternalServerError
	}
}

// writeJSON panics for a value that has no JSON form, which is ours to avoid.
func writeJSON(ctx *fasthttp.RequestCtx, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Errorf("%T as JSON: %w", value, err))
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.SetBody(body)
}

// recoverPanic turns a panic of a handler into a 500 of its one request.
func (s *Server) recoverPanic(ctx *fasthttp.RequestCtx) {
	reason := recover()
	if reason == nil {
		return
	}
	s.log.Error().Str("panic", fmt.Sprint(reason)).Bytes("stack", debug.Stack()).Msg("control call panicked")
	s.fail(ctx, errors.New("internal error: the handler of this call panicked, the log has the stack"))
}

func (s *Server) logCall(ctx *fasthttp.RequestCtx, arrived time.Time) {
	s.log.Debug().
		Bytes("method", ctx.Method()).
		Bytes("path", ctx.Request.URI().PathOriginal()).
		Int("status", ctx.Response.StatusCode()).
		Dur("took", time.Since(arrived)).
		Msg("control call")
}

// shorten cuts what an answer quotes out of a request, in the middle.
func shorten(s string) string {
	const half = 60 // bytes
	if len(s) <= 2*half {
		return s
	}
	return strings.ToValidUTF8(s[:half], "") + "…" + strings.ToValidUTF8(s[len(s)-half:], "")
}
