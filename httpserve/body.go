package httpserve

import (
	"bytes"
	"io"
	"slices"

	"github.com/valyala/fasthttp"
)

// bodies reads the bodies of requests in fasthttp's place, which lets one in chunks cost four times what it may have.
type bodies struct {
	most   int // bytes of a body
	handle fasthttp.RequestHandler
	broken func(*fasthttp.RequestCtx, error)
}

// takeBodies has s call its handler with the whole body, and its ErrorHandler for one that can't be read.
func takeBodies(s *fasthttp.Server) {
	b := bodies{s.MaxRequestBodySize, s.Handler, s.ErrorHandler}
	s.Handler = b.serve
	s.HeaderReceived = b.stopTooLarge
	s.ExpectHandler = b.expect
	s.StreamRequestBody = true
}

// stopTooLarge makes a request whose body is told to be too large one that waits for expect: fasthttp would wait for the
// beginning of the body.
func (b bodies) stopTooLarge(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if h.ContentLength() > b.most {
		h.Set(fasthttp.HeaderExpect, "100-continue")
	}
	return fasthttp.RequestConfig{}
}

// expect returns the status for a request that waits before it sends its body. The handler is called only after 100.
func (b bodies) expect(ctx *fasthttp.RequestCtx) int {
	if ctx.Request.Header.ContentLength() <= b.most {
		return fasthttp.StatusContinue
	}
	b.broken(ctx, fasthttp.ErrBodyTooLarge)
	return ctx.Response.StatusCode()
}

func (b bodies) serve(ctx *fasthttp.RequestCtx) {
	if err := readBody(ctx, b.most); err != nil {
		b.broken(ctx, err)
		ctx.SetConnectionClose()
		return
	}
	b.handle(ctx)
}

// readBody puts the body, of at most most bytes, where ctx.PostBody finds it. Then the connection is at the request's end.
func readBody(ctx *fasthttp.RequestCtx, most int) error {
	stream := ctx.RequestBodyStream()
	if stream == nil {
		return nil
	}
	_ = ctx.Request.CloseBodyStream() // which cannot fail, and leaves the stream as it is: it is the server's
	body, err := readStream(stream, ctx.Request.Header.ContentLength(), most, ctx.Request.SwapBody(nil))
	ctx.Request.SwapBody(body)
	return err
}

// readStream reads a body of length bytes, into room where that is large enough; a negative length means that it comes in
// chunks.
func readStream(from io.Reader, length, most int, room []byte) ([]byte, error) {
	if length > most {
		return nil, fasthttp.ErrBodyTooLarge
	}
	if length < 0 {
		return readChunks(from, most)
	}
	body := slices.Grow(room[:0], length)[:length]
	_, err := io.ReadFull(from, body)
	return body, err
}

// Pieces of a body in chunks, in bytes: each is as large as all before it, within these.
const (
	firstPiece = 4 << 10
	largePiece = 1 << 20
)

// readChunks reads to the end into pieces, and joins them there. A body that is refused costs no more than most bytes; one
// that is taken costs up to twice its own, and a piece, for a moment.
func readChunks(from io.Reader, most int) ([]byte, error) {
	var pieces [][]byte
	piece := make([]byte, 0, min(firstPiece, most+1))
	for have := 0; ; {
		n, err := from.Read(piece[len(piece):cap(piece)])
		piece = piece[:len(piece)+n]
		have += n
		switch {
		case have > most:
			return nil, fasthttp.ErrBodyTooLarge
		case err == io.EOF:
			return bytes.Join(append(pieces, piece), nil), nil
		case err != nil:
			return nil, err
		case len(piece) == cap(piece):
			pieces = append(pieces, piece)
			piece = make([]byte, 0, min(have, largePiece, most+1-have))
		}
	}
}
