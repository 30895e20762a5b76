package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
)

// readyFleet answers reads and panics at changes.
func readyFleet() *fakeFleet {
	return &fakeFleet{
		ConfigFunc: func(context.Context) (config.Live, error) { return config.Default().Live, nil },
		StatsFunc:  func(context.Context) (ipc.Stats, error) { return ipc.Stats{}, nil },
	}
}

// A client that writes its whole request before it reads, as most do, sees the 413 and no reset, whatever the size.
func TestWire_TooLarge(t *testing.T) {
	a := start(t, readyFleet(), nil, Options{})
	for _, size := range []int{bodyLimit + 1, 3 << 20, 7 << 20, bodyCeiling, bodyCeiling + 1, 40 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			conn := a.dial(t)
			fmt.Fprintf(conn, "PATCH /config HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", size)
			writeBody(t, conn, size)
			wantRaw(t, readAll(t, conn), 413, "want at most 2097152")
		})
	}
}

func writeBody(t *testing.T, conn net.Conn, size int) {
	t.Helper()
	chunk := make([]byte, 64<<10)
	for i := range chunk {
		chunk[i] = ' '
	}
	for size > 0 {
		n, err := conn.Write(chunk[:min(size, len(chunk))])
		if err != nil {
			t.Fatalf("%d bytes before the end: %v", size, err)
		}
		size -= n
	}
}

// wantRaw checks an answer as it came over the wire.
func wantRaw(t *testing.T, got string, status int, says string) {
	t.Helper()
	head, body, _ := strings.Cut(got, "\r\n\r\n")
	if !strings.HasPrefix(head, fmt.Sprintf("HTTP/1.1 %d ", status)) || !strings.HasPrefix(body, `{"error":"`) || !strings.Contains(body, says) {
		t.Errorf("answer = %q, want %d with %q", got, status, says)
	}
	if !strings.Contains(head, "\r\nContent-Type: application/json") {
		t.Errorf("head = %q, want a JSON body", head)
	}
}

func TestWire_TooLarge_Chunked(t *testing.T) {
	a := start(t, readyFleet(), nil, Options{})
	conn := a.dial(t)
	fmt.Fprintf(conn, "PATCH /config HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
	for range 10 {
		fmt.Fprintf(conn, "%x\r\n", 1<<20)
		writeBody(t, conn, 1<<20)
		fmt.Fprintf(conn, "\r\n")
	}
	fmt.Fprintf(conn, "0\r\n\r\n")
	wantRaw(t, readAll(t, conn), 413, "want at most")
}

// A length that is only claimed is refused at once, without memory for it and without waiting for the body.
func TestWire_TooLarge_Declared(t *testing.T) {
	a := start(t, readyFleet(), nil, Options{})
	for _, extra := range []string{"", "Expect: 100-continue\r\n"} {
		got := a.raw(t, "PATCH /config HTTP/1.1\r\nHost: localhost\r\n"+extra+"Content-Type: application/json\r\nContent-Length: 8000000000\r\n\r\n")
		got = strings.TrimPrefix(got, "HTTP/1.1 100 Continue\r\n\r\n")
		wantRaw(t, got, 413, "want at most")
	}
}

// Within the ceiling the path, the method and the content type are judged before the size.
func TestWire_TooLarge_ComesLater(t *testing.T) {
	a := start(t, readyFleet(), nil, Options{})
	body := strings.Repeat(" ", 3<<20)
	wantError(t, a.call(t, "PATCH", "/nothing", body), http.StatusNotFound, "nothing")
	wantError(t, a.call(t, "PUT", "/config", body), http.StatusMethodNotAllowed, "PUT")
	wantError(t, a.call(t, "PATCH", "/config", body, "Content-Type: text/plain"), http.StatusUnsupportedMediaType, "text/plain")
	wantError(t, a.call(t, "PATCH", "/config", body), http.StatusRequestEntityTooLarge, "3145728")
}

func TestWire_TooLarge_Head(t *testing.T) {
	a := start(t, readyFleet(), nil, Options{})
	got := a.raw(t, "HEAD /config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8000000000\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 413 ") || !strings.HasSuffix(got, "\r\n\r\n") {
		t.Errorf("answer = %q, want 413 without a body", got)
	}
}

func TestWire_LargeHeaders(t *testing.T) {
	a := start(t, readyFleet(), nil, Options{})
	for _, request := range []string{
		"GET /config HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n",
		"GET /" + strings.Repeat("x", 64<<10) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		wantRaw(t, a.raw(t, request), 431, "16384")
	}
}

func TestWire_Broken(t *testing.T) {
	a := start(t, readyFleet(), nil, Options{})
	for _, request := range []string{
		"rubbish\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", // the beginning of TLS
		"GET /config HTTP/1.1\r\nHost : localhost\r\n\r\n",
		"GET /config HTTP/1.1\r\nHost: localhost\r\nX: a\r\n folded\r\n\r\n",
		"PATCH /config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
		"PATCH /config HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
		"PATCH /config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1e1\r\n\r\n",
		"PATCH /config HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
		"PATCH /config HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n",
		"PATCH /config HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
		"PATCH /config HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
	} {
		wantRaw(t, a.raw(t, request), 400, "")
	}
}

// Two lengths are two opinions about where the next request begins: the request is refused, the connection closed, and
// what follows is not looked at.
func TestWire_TwoLengths(t *testing.T) {
	a := start(t, readyFleet(), nil, Options{})
	for _, headers := range []string{
		"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
		"transfer-encoding: chunked\r\ncontent-length: 4\r\n",
	} {
		got := a.raw(t, "PATCH /config HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+headers+"\r\n0\r\n\r\nPOST /stats/reset HTTP/1.1\r\nHost: localhost\r\n\r\n")
		wantRaw(t, got, 400, "both Content-Length and Transfer-Encoding")
		if n := strings.Count(got, "HTTP/1.1 "); n != 1 {
			t.Errorf("%d answers, want 1", n)
		}
	}
}

func TestWire_SlowLoris(t *testing.T) {
	a := start(t, readyFleet(), nil, Options{}, func(s *Server) { s.http.ReadTimeout = 200 * time.Millisecond })
	for name, request := range map[string]string{
		"nothing":     "",
		"half a line": "GET /con",
		"headers":     "GET /config HTTP/1.1\r\nHost: localhost\r\nX: ",
		"body":        "PATCH /config HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{",
		"large body":  "PATCH /config HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 20000\r\n\r\n" + strings.Repeat(" ", 10_000),
		"chunk":       "PATCH /config HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n{",
		"chunks":      "PATCH /config HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
	} {
		t.Run(name, func(t *testing.T) { wantRaw(t, a.raw(t, request), 408, "within 200ms") })
	}
}

// Bytes that keep coming, one at a time, do not extend the time: it is for the whole request.
func TestWire_SlowLoris_Drip(t *testing.T) {
	a := start(t, readyFleet(), nil, Options{}, func(s *Server) { s.http.ReadTimeout = 200 * time.Millisecond })
	conn := a.dial(t)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	answered := make(chan string, 1)
	go func() {
		got, _ := io.ReadAll(conn) // a reset after the answer is as good as an end
		answered <- string(got)
	}()
	begun := time.Now()
	fmt.Fprintf(conn, "GET /config HTTP/1.1\r\nX: ")
	for {
		select {
		case got := <-answered:
			if got != "" {
				wantRaw(t, got, 408, "within")
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("the connection was held for %v, want about 200ms", took)
			}
			return
		case <-tick.C:
			_, _ = conn.Write([]byte("x")) // fails when the server has closed
		}
	}
}

// Requests that arrive together are answered one by one, in order, on one connection; so is one with a body that its
// route does not want.
func TestWire_Pipelined(t *testing.T) {
	a := start(t, readyFleet(), nil, Options{})
	conn := a.dial(t)
	fmt.Fprintf(conn, "GET /config HTTP/1.1\r\nHost: localhost\r\n\r\n"+
		"GET /stats HTTP/1.1\r\nHost: localhost\r\nContent-Length: 43\r\n\r\nPOST /stats/reset HTTP/1.1\r\nHost: localhost"+
		"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"+
		"HEAD /stats HTTP/1.1\r\nHost: localhost\r\n\r\n"+
		"DELETE /stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	r := bufio.NewReader(conn)
	for i, want := range []struct {
		method string
		status int
	}{{"GET", 200}, {"GET", 200}, {"GET", 404}, {"HEAD", 200}, {"DELETE", 405}} {
		resp, err := http.ReadResponse(r, &http.Request{Method: want.method})
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want.status {
			t.Errorf("answer %d = %d, want %d", i, resp.StatusCode, want.status)
		}
	}
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last answer: %v, want the end", err)
	}
}

// A client that goes in the middle of its request, or resets, takes only its connection with it.
func TestWire_HalfRequests(t *testing.T) {
	a := start(t, readyFleet(), nil, Options{})
	for _, half := range []string{"", "G", "GET /config HTTP/1.1\r\n", "PATCH /config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"} {
		for _, linger := range []int{-1, 0} { // 0 = reset
			conn := a.dial(t)
			if err := conn.(*net.TCPConn).SetLinger(linger); err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(conn, half)
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := a.call(t, "GET", "/config", ""); got.status != http.StatusOK {
		t.Errorf("status = %d, want 200", got.status)
	}
}
