package httpserve

import (
	"bytes"
	"errors"

	"github.com/valyala/fasthttp"
)

var (
	errTwoLengths = errors.New("both Content-Length and Transfer-Encoding, want one of them")
	errFolded     = errors.New("a header over several lines, want each on one")
)

// CheckFraming refuses a request with two lengths or a folded header, and has its connection closed after the answer: where it
// ends, and so what follows it on the connection, is a matter of opinion. The error's text is fit for the client; its status
// is 400.
func CheckFraming(ctx *fasthttp.RequestCtx) error {
	var length, encoding, folded bool
	for line := range bytes.Lines(ctx.Request.Header.RawHeaders()) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		length = length || bytes.EqualFold(name, []byte(fasthttp.HeaderContentLength))
		encoding = encoding || bytes.EqualFold(name, []byte(fasthttp.HeaderTransferEncoding))
		folded = folded || line[0] == ' ' || line[0] == '\t'
	}
	switch {
	case length && encoding:
		ctx.SetConnectionClose()
		return errTwoLengths
	case folded:
		ctx.SetConnectionClose()
		return errFolded
	}
	return nil
}
