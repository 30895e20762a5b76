package httpserve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

const chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

// inChunks is body in chunks of size bytes, without the last one, which is empty.
func inChunks(body string, size int) string {
	var b strings.Builder
	for len(body) > 0 {
		n := min(size, len(body))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return b.String()
}

// echo answers with the body.
func echo(ctx *fasthttp.RequestCtx) { ctx.SetBody(ctx.PostBody()) }

// wantAnswer reads a whole answer.
func wantAnswer(t *testing.T, from *bufio.Reader, status int, body string) {
	t.Helper()
	answer, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(answer.Body); answer.StatusCode != status || string(got) != body || err != nil {
		t.Errorf("answer = %d %q, %v, want %d %q", answer.StatusCode, got, err, status, body)
	}
}

// The limit is 1,000 bytes. What is taken leaves the connection to the next request, which has been sent already.
func TestBody_Taken(t *testing.T) {
	below, at := strings.Repeat("b", 999), strings.Repeat("a", 1000)
	tests := map[string]struct{ request, body string }{
		"no body":              {get, ""},
		"no length":            {"POST / HTTP/1.1\r\nHost: x\r\n\r\n", ""},
		"nothing":              {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", ""},
		"a length at it":       {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + at, at},
		"a body with GET":      {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", "{}"},
		"no chunks":            {chunked + "0\r\n\r\n", ""},
		"chunks below it":      {chunked + inChunks(below, 100) + "0\r\n\r\n", below},
		"chunks at it":         {chunked + inChunks(at, 100) + "0\r\n\r\n", at},
		"one chunk at it":      {chunked + inChunks(at, 1000) + "0\r\n\r\n", at},
		"chunks of a byte":     {chunked + inChunks(at, 1) + "0\r\n\r\n", at},
		"chunks with trailers": {chunked + inChunks("abc", 2) + "0\r\nX-Sum: 1\r\n\r\n", "abc"},
		"chunks that say more": {chunked + "3;name=value\r\nabc\r\n0;last\r\n\r\n", "abc"},
		"chunks after a wait":  {strings.Replace(chunked, "Host", "Expect: 100-continue\r\nHost", 1) + inChunks("abc", 2) + "0\r\n\r\n", "abc"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := start(t, listen(t), Limits{Open: 9}, echo)
			from := bufio.NewReader(s.dial(tt.request + chunked + inChunks("next", 3) + "0\r\n\r\n" + get))
			if strings.Contains(tt.request, "Expect") {
				wantAnswer(t, from, 100, "")
			}
			wantAnswer(t, from, 200, tt.body)
			wantAnswer(t, from, 200, "next")
			wantAnswer(t, from, 200, "")
		})
	}
}

// What comes after a body that is refused is not looked at.
func TestBody_Refused(t *testing.T) {
	above := strings.Repeat("a", 1001)
	tests := map[string]struct {
		request string
		status  int
	}{
		"a length above it, nothing sent":   {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n", 413},
		"the same, waiting":                 {"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1001\r\n\r\n", 413},
		"the same with HTTP/1.0":            {"POST / HTTP/1.0\r\nContent-Length: 1001\r\n\r\n" + above, 413},
		"chunks above it":                   {chunked + inChunks(above, 100) + "0\r\n\r\n" + get, 413},
		"chunks of a byte above it":         {chunked + inChunks(above, 1) + "0\r\n\r\n" + get, 413},
		"one chunk above it":                {chunked + inChunks(above, 1001) + "0\r\n\r\n" + get, 413},
		"one chunk above it, not all of it": {chunked + "40000000\r\n" + above, 413},
		"the same after some":               {chunked + inChunks("abc", 2) + "40000000\r\n" + above[3:], 413},
		"a chunk below 2^60":                {chunked + "fffffffffffffff\r\n" + above, 413},
		"a chunk above 2^64":                {chunked + "10000000000000000\r\n{", 400},
		"a negative chunk":                  {chunked + "-2\r\n{}\r\n0\r\n\r\n" + get, 400},
		"a chunk size with 0x":              {chunked + "0x2\r\n{}\r\n0\r\n\r\n" + get, 400},
		"a chunk of no size":                {chunked + "\r\n{}\r\n0\r\n\r\n" + get, 400},
		"a chunk with more":                 {chunked + "2\r\nabc\r\n0\r\n\r\n" + get, 400},
		"a chunk with less":                 {chunked + "4\r\nabc\r\n0\r\n\r\n" + get, 400},
		"broken trailers":                   {chunked + "0\r\nX\r\n\r\n" + get, 400},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := start(t, listen(t), Limits{Open: 9}, func(*fasthttp.RequestCtx) { t.Error("the handler was called") })
			conn := s.dial(tt.request)
			wantStatus(t, conn, tt.status)
			wantEnd(t, conn)
		})
	}
}

// A client that sends chunks without end gets its answer.
func TestBody_NeverEnds(t *testing.T) {
	s := start(t, listen(t), Limits{Open: 9}, hello)
	conn := s.dial(chunked)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		block := inChunks(strings.Repeat("x", 64<<10), 100)
		for {
			if _, err := io.WriteString(conn, block); err != nil {
				return // it has been refused
			}
		}
	}()
	wantStatus(t, conn, 413)
	_ = conn.Close()
	<-ended
}

// Half a body is no call.
func TestBody_ClientLeaves(t *testing.T) {
	for name, request := range map[string]string{
		"a length":    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\nabc",
		"in a chunk":  chunked + "100\r\nabc",
		"in a size":   chunked + "3\r\nabc\r\n1",
		"in trailers": chunked + "3\r\nabc\r\n0\r\nX: y\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, listen(t), Limits{Open: 9}, func(*fasthttp.RequestCtx) { t.Error("the handler was called") })
			conn := s.dial(request).(*net.TCPConn)
			if err := conn.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			wantStatus(t, conn, 400)
			wantEnd(t, conn)
		})
	}
}
