package frontend

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// raw sends bytes over a connection of its own, and returns all that comes back until the server closes it.
func (a *api) raw(request string) string {
	a.t.Helper()
	got, err := io.ReadAll(a.dial(request))
	if err != nil {
		a.t.Errorf("after %q: %v", got, err)
	}
	return string(got)
}

// TestHostile_Framing sends requests that two readers would cut differently: each is one error, and the end of its connection, so
// that nothing behind it is taken for a request.
func TestHostile_Framing(t *testing.T) {
	a := start(t, &fakeEngines{})
	const smuggled = "0\r\n\r\nPOST /sleep HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, request := range []string{
		"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + smuggled,
		"POST /v1/completions HTTP/1.1\r\nHost: x\r\ntransfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n" + smuggled,
		"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n" + smuggled,
		"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n" + smuggled,
		"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n" + smuggled,
		"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\n" + smuggled,
		"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n" + smuggled,
		"GET /health HTTP/1.1\r\nHost: x\r\nX: a\r\n folded\r\n\r\n" + smuggled,
		"GET /health HTTP/1.1\r\nHost : x\r\n\r\n" + smuggled,
		"GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n" + smuggled,
	} {
		got := a.raw(request)
		head, body, _ := strings.Cut(got, "\r\n\r\n")
		if !strings.HasPrefix(head, "HTTP/1.1 4") || !strings.HasPrefix(body, `{"error":{"message":`) || strings.Count(got, "HTTP/1.1 ") != 1 {
			t.Errorf("%q: answer %q, want one error of the client's", request, got)
		}
	}
}

// TestHostile_SlowLoris has clients that never end their request, silent or a byte at a time: they get 408 when the time for the
// whole request is over.
func TestHostile_SlowLoris(t *testing.T) {
	s, err := New(&fakeEngines{HealthFunc: func() error { return nil }}, vocabulary(), Options{Models: []string{"tiny"}})
	if err != nil {
		t.Fatal(err)
	}
	s.http.ReadTimeout = 200 * time.Millisecond
	a := serveAt(t, s, listen(t), nil)
	for name, begin := range map[string]string{
		"nothing": "", "half a line": "GET /hea", "headers": "GET /health HTTP/1.1\r\nHost: x\r\nX: ",
		"body": "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n{",
	} {
		for _, drips := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, drips %v", name, drips), func(t *testing.T) {
				begun := time.Now()
				conn := a.dial(begin)
				answered := make(chan string, 1)
				go func() {
					got, _ := io.ReadAll(conn) // a reset after the answer is as good as an end
					answered <- string(got)
				}()
				got := await(conn, answered, drips)
				if !strings.HasPrefix(got, "HTTP/1.1 408 ") && !(drips && got == "") && !(drips && name == "nothing") {
					t.Errorf("answer %q, want 408", got)
				}
				if took := time.Since(begun); took > 5*time.Second {
					t.Errorf("the connection was held for %v, want about 200ms", took)
				}
			})
		}
	}
}

// await returns the answer. Until it comes a byte is sent now and then, where drips.
func await(conn net.Conn, answered <-chan string, drips bool) string {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case got := <-answered:
			return got
		case <-tick.C:
			if drips {
				_, _ = conn.Write([]byte("x")) // fails when the server has closed
			}
		}
	}
}

// TestHostile_Bodies sends bodies that are meant to cost much: each is refused in time, and the server goes on.
func TestHostile_Bodies(t *testing.T) {
	a := start(t, &fakeEngines{HealthFunc: func() error { return nil }})
	var keys strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&keys, `"k%d":0,`, i)
	}
	for name, body := range map[string]string{
		"deep lists":   strings.Repeat("[", 100_000),
		"deep objects": strings.Repeat(`{"a":`, 300_000),
		"deep value":   `{"prompt":"x","logit_bias":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}",
		"many keys":    "{" + keys.String() + `"prompt":1.5}`,
		"twice":        `{"prompt":1.5,"prompt":2.5}`,
		"NUL":          "{\"prompt\":\"a\x00b\"}",
		"UTF-16":       "\xff\xfe{\x00}\x00",
		"huge number":  `{"prompt":"x","max_tokens":1e400}`,
		"2^64":         `{"prompt":"x","max_tokens":18446744073709551616}`,
		"NaN":          `{"prompt":"x","temperature":NaN}`,
	} {
		begun := time.Now()
		if r := a.post("/v1/completions", body); r.status < 400 || r.status >= 500 {
			t.Errorf("%s: %d %.200s, want an error of the client's", name, r.status, r.body)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%s: answered after %v", name, took)
		}
	}
	got := a.raw("POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n40000000\r\n" + strings.Repeat("x", 32<<20+1))
	if !strings.HasPrefix(got, "HTTP/1.1 413 ") {
		t.Errorf("a chunk of 1 GB = %q, want 413", got)
	}
	if r := a.call("GET", "/health", ""); r.status != 200 {
		t.Errorf("health = %d, want 200", r.status)
	}
}
