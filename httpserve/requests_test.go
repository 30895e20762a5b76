package httpserve

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

func TestCheckFraming(t *testing.T) {
	tests := map[string]struct {
		headers, body string
		want          error
	}{
		"no body":             {"", "", nil},
		"a length":            {"Content-Length: 2\r\n", "{}", nil},
		"chunks":              {"Transfer-Encoding: chunked\r\n", "0\r\n\r\n", nil},
		"both":                {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n", errTwoLengths},
		"both the other way":  {"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n", errTwoLengths},
		"both in other cases": {"content-LENGTH: 5\r\ntransfer-ENCODING: chunked\r\n", "0\r\n\r\n", errTwoLengths},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := make(chan error, 2)
			s := start(t, listen(t), Limits{Open: 9}, func(ctx *fasthttp.RequestCtx) { got <- CheckFraming(ctx) })
			conn := s.dial("POST / HTTP/1.1\r\nHost: x\r\n" + tt.headers + "\r\n" + tt.body)
			wantStatus(t, conn, 200)
			if err := <-got; err != tt.want {
				t.Errorf("CheckFraming = %v, want %v", err, tt.want)
			}
			if tt.want != nil {
				wantEnd(t, conn)
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	tests := map[string]struct {
		request string
		status  int
	}{
		"no HTTP":            {"hello\r\n\r\n", 400},
		"large headers":      {"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", 431},
		"many headers":       {"GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X: y\r\n", 10_000) + "\r\n", 431},
		"large body":         {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n" + strings.Repeat("x", 5_000_000), 413},
		"claimed body":       {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n{", 413},
		"large chunk":        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n40000000\r\n" + strings.Repeat("x", 1001), 413},
		"two lengths":        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400},
		"chunk of no size":   {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
		"unknown encoding":   {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 400},
		"blank before the :": {"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := start(t, listen(t), Limits{Open: 9}, hello)
			answer, err := io.ReadAll(s.dial(tt.request))
			if want := fmt.Sprintf("HTTP/1.1 %d ", tt.status); err != nil || !strings.HasPrefix(string(answer), want) {
				t.Errorf("answer %q, %v, want %s and the end", answer, err, want)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	tests := []struct {
		tokens []string
		header string
		admits bool
	}{
		{nil, "", true}, {[]string{""}, "", true}, {[]string{"", ""}, "Bearer ", true},
		{[]string{"one"}, "", false}, {[]string{"one"}, "Bearer", false}, {[]string{"one"}, "Bearer ", false},
		{[]string{"one"}, "one", false}, {[]string{"one"}, "Basic one", false}, {[]string{"one"}, "Bearer on", false},
		{[]string{"one"}, "Bearer ones", false}, {[]string{"one"}, "Bearer One", false}, {[]string{"one"}, "Bearer  one", false},
		{[]string{"one"}, "Bearer one", true}, {[]string{"one", "two"}, "bearer two", true}, {[]string{"one", "two"}, "Bearer one", true},
		{[]string{"one", ""}, "Bearer ", false},
	}
	for _, tt := range tests {
		var ctx fasthttp.RequestCtx
		ctx.Request.Header.Set("Authorization", tt.header)
		if got := NewTokens(tt.tokens...).Admit(&ctx); got != tt.admits {
			t.Errorf("%q admit %q = %v, want %v", tt.tokens, tt.header, got, tt.admits)
		}
		if scheme := string(ctx.Response.Header.Peek("WWW-Authenticate")); (scheme == "Bearer") == tt.admits {
			t.Errorf("%q: WWW-Authenticate = %q", tt.header, scheme)
		}
	}
}
