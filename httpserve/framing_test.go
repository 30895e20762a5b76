package httpserve

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/valyala/fasthttp"

	"vllm-vcr/fuzzlimit"
)

// FuzzCheckFraming: where a request ends is no matter of opinion. What passes ends for Go's own reader, if that takes it too, at the same
// byte, and has the same body.
func FuzzCheckFraming(f *testing.F) {
	for _, text := range []string{
		"GET /config HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nrest",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nX-A: 1\r\n Content-Length: 3\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length : 3\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n",
		"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\nHost: x\nContent-Length: +3\n\nabc",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		defer fuzzlimit.Watch(t, len(stream))()
		body, rest, err := readOurs(stream)
		if err != nil {
			return
		}
		wantBody, wantRest, err := readGo(stream)
		if err == nil && (!bytes.Equal(body, wantBody) || !bytes.Equal(rest, wantRest)) {
			t.Errorf("%q: body %q and then %q, Go reads %q and then %q", stream, body, rest, wantBody, wantRest)
		}
	})
}

// readOurs reads a request as our servers do.
func readOurs(stream []byte) (body, rest []byte, err error) {
	r := bufio.NewReader(bytes.NewReader(stream))
	var ctx fasthttp.RequestCtx
	if err := ctx.Request.Header.Read(r); err != nil {
		return nil, nil, err
	}
	if err := ctx.Request.ContinueReadBodyStream(r, 1<<20, false); err != nil {
		return nil, nil, err
	}
	if err := readBody(&ctx, 1<<20); err != nil {
		return nil, nil, err
	}
	if err := CheckFraming(&ctx); err != nil {
		return nil, nil, err
	}
	rest, err = io.ReadAll(r)
	return ctx.Request.Body(), rest, err
}

// readGo reads it as net/http does.
func readGo(stream []byte) (body, rest []byte, err error) {
	r := bufio.NewReader(bytes.NewReader(stream))
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil, nil, err
	}
	if body, err = io.ReadAll(req.Body); err != nil {
		return nil, nil, err
	}
	rest, err = io.ReadAll(r)
	return body, rest, err
}
