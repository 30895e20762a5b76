//go:build chaos

package chaos

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// dial opens a connection to an address, for bytes that no HTTP client sends.
func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // closed already, in most tests
	if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// raw sends these bytes and reads the answers until the server closes the connection, or says nothing for a while. It returns the
// statuses, and whether the connection was closed.
func raw(t *testing.T, address, request string) (statuses []int, closed bool, bodies string) {
	t.Helper()
	conn := dial(t, address)
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	for {
		if err := conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			var silence net.Error
			return statuses, !errors.As(err, &silence) || !silence.Timeout(), bodies
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		statuses, bodies = append(statuses, answer.StatusCode), bodies+string(text)
	}
}

// F35: clients that send a header or a body byte by byte.
func TestF35_SlowLoris(t *testing.T) {
	p := serve(t, 2, "--token-source", "echo")
	const each = 50
	stop := make(chan struct{})
	var slow sync.WaitGroup
	closed := make(chan time.Duration, each) // of those at the control API
	for i := range 2 * each {
		address, request := p.control.address, "GET /config HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
		if i%2 == 1 {
			address, request = p.api.address, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
		}
		conn := dial(t, address)
		slow.Go(func() {
			took, ended := drip(conn, request, stop)
			if ended && i%2 == 0 {
				closed <- took
			}
		})
	}
	limit := 12 * time.Second // the API's 10 s, and what its answer takes
	for range each {
		select {
		case took := <-closed:
			if took > limit {
				t.Errorf("a slow client was closed after %v, want at most %v", took, limit)
			}
		case <-time.After(limit):
			t.Fatal("a slow client is still connected")
		}
		begun := time.Now()
		if err := errors.Join(p.answered(), p.control.want(200, "GET", "/config", "")); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("other clients waited %v, want at most 1 s", took)
		}
	}
	p.signal(t, syscall.SIGTERM) // with those at the front end still at it
	p.wantExit(t, 0, 3*time.Second)
	close(stop)
	slow.Wait()
}

// drip sends the rest of a request at one byte a second, until the server closes the connection.
func drip(conn net.Conn, request string, stop <-chan struct{}) (took time.Duration, closed bool) {
	begun := time.Now()
	defer func() { _ = conn.Close() }() // the only use of it is over
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, conn) // up to its end, however that comes
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if _, err := io.WriteString(conn, request); err != nil {
			<-gone
			return time.Since(begun), true
		}
		request = "x"
		select {
		case <-tick.C:
		case <-gone:
			return time.Since(begun), true
		case <-stop:
			_ = conn.Close()
			<-gone
			return 0, false
		}
	}
}

// F37: what a web page could send to the control API, and methods that must not change anything.
func TestF37_WebPages(t *testing.T) {
	p := serve(t, 1)
	const body = `{"max_num_seqs": 3}`
	before := p.control.must(t, "GET", "/config", "")
	request := func(line string, headers ...string) string {
		return line + " HTTP/1.1\r\n" + strings.Join(headers, "\r\n") + fmt.Sprintf("\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	const host, kind = "Host: localhost", "Content-Type: application/json"
	for name, c := range map[string]struct {
		request string
		want    int
	}{
		"foreign host":              {request("PATCH /config", "Host: evil.test", kind), 421},
		"foreign host in the line":  {request("PATCH http://evil.test/config", host, kind), 421},
		"foreign origin":            {request("PATCH /config", host, kind, "Origin: http://evil.test"), 403},
		"null origin":               {request("PATCH /config", host, kind, "Origin: null"), 403},
		"form":                      {request("PATCH /config", host, "Content-Type: application/x-www-form-urlencoded"), 415},
		"plain text":                {request("PATCH /config", host, "Content-Type: text/plain"), 415},
		"no type":                   {request("PATCH /config", host), 415},
		"POST":                      {request("POST /config", host, kind), 405},
		"GET":                       {request("GET /config", host, kind), 200},
		"HEAD":                      {request("HEAD /config/reset", host, kind), 405},
		"GET of a reset":            {request("GET /stats/reset", host, kind), 405},
		"OPTIONS":                   {request("OPTIONS /config", host, kind), 405},
		"preflight":                 {request("OPTIONS /config", host, "Origin: http://evil.test", "Access-Control-Request-Method: PATCH"), 403},
		"method override":           {request("GET /config", host, kind, "X-HTTP-Method-Override: PATCH"), 200},
		"method in the query":       {request("GET /config?_method=PATCH", host, kind), 200},
		"reset by a foreign origin": {request("POST /config/reset", host, "Origin: http://evil.test"), 403},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, p.control.address)
			if _, err := io.WriteString(conn, c.request); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: strings.Fields(c.request)[0]})
			if err != nil {
				t.Fatal(err)
			}
			if answer.StatusCode != c.want {
				t.Errorf("status = %d, want %d", answer.StatusCode, c.want)
			}
			if allow := answer.Header.Get("Access-Control-Allow-Origin"); allow != "" {
				t.Errorf("Access-Control-Allow-Origin: %s, want none", allow)
			}
		})
	}
	if after := p.control.must(t, "GET", "/config", ""); after != before {
		t.Errorf("config = %s, want %s as before", after, before)
	}
}

// F38: paths that are nearly one of ours: they are others, and so not found.
func TestF38_Paths(t *testing.T) {
	p := serve(t, 1)
	for path, want := range map[string]int{
		"/config": 200, "/config?x=1": 200, "http://localhost/config": 200,
		"//config": 404, "/config/": 404, "/CONFIG": 404, "/%2e%2e/config": 404, "/a/../config": 404, "/conf%69g": 404, "/config%00": 404,
		"/./config": 404, "/config;x": 404, "/engines/00/config": 404, "/engines/-1/config": 404, "/engines/99999999999999999999/config": 404,
		"/engines/1/config": 404, "/": 404, "/etc/passwd": 404, "/../../etc/passwd": 404, "*": 400, "config": 400,
	} {
		for address, controlled := range map[string]bool{p.control.address: true, p.api.address: false} {
			got, _, body := raw(t, address, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			if len(got) != 1 || got[0] >= 500 {
				t.Errorf("%s: statuses %v, want one below 500: %.200s", path, got, body)
				continue
			}
			if controlled && got[0] != want {
				t.Errorf("%s: status %d, want %d: %.200s", path, got[0], want, body)
			}
		}
	}
}

// F47: requests whose end is a matter of opinion, to both APIs. What follows them on the connection is not taken for another request.
func TestF47_Smuggling(t *testing.T) {
	p := serve(t, 1)
	const follows = "GET /stolen HTTP/1.1\r\nHost: localhost\r\n\r\n"
	const post = "POST /config/reset HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	for name, request := range map[string]string{
		"length and chunks":        post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + follows,
		"chunks and length":        post + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + follows,
		"two lengths":              post + "Content-Length: 0\r\nContent-Length: 40\r\n\r\n" + follows,
		"a length with a sign":     post + "Content-Length: +2\r\n\r\n{}" + follows,
		"a negative length":        post + "Content-Length: -1\r\n\r\n" + follows,
		"no chunk size":            post + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n" + follows,
		"a chunk size of 2^64":     post + "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n{}\r\n0\r\n\r\n" + follows,
		"a folded header":          post + "X-A: b\r\n c\r\nContent-Length: 0\r\n\r\n" + follows,
		"a header of 64 KB":        post + "X-A: " + strings.Repeat("a", 64<<10) + "\r\n\r\n",
		"a thousand headers":       post + strings.Repeat("X-A: b\r\n", 10_000) + "\r\n",
		"a blank in a name":        post + "Content-Length : 0\r\n\r\n" + follows,
		"no host":                  "POST /config/reset HTTP/1.1\r\nContent-Length: 0\r\n\r\n" + follows,
		"two hosts":                "POST /config/reset HTTP/1.1\r\nHost: localhost\r\nHost: evil.test\r\nContent-Length: 0\r\n\r\n" + follows,
		"no HTTP":                  "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("x", 600) + "\r\n\r\n",
		"a line of 64 KB":          "GET /" + strings.Repeat("a", 64<<10) + " HTTP/1.1\r\n\r\n",
		"an unknown encoding":      post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + follows,
		"an encoding in disguise":  post + "Transfer-Encoding: \x0bchunked\r\nContent-Length: 0\r\n\r\n" + follows,
		"chunks with a bare break": post + "Transfer-Encoding: chunked\r\n\r\n0\n\n" + follows,
	} {
		for api, address := range map[string]string{"control": p.control.address, "OpenAI": p.api.address} {
			t.Run(name+", "+api, func(t *testing.T) {
				statuses, closed, bodies := raw(t, address, request)
				if len(statuses) != 1 || (statuses[0] != 400 && statuses[0] != 431 && statuses[0] != 501) || !closed {
					t.Errorf("statuses %v, connection closed %v, want one 400 (or 431, 501) and a close: %.300s", statuses, closed, bodies)
				}
			})
		}
	}
	if err := p.control.want(200, "GET", "/health", ""); err != nil {
		t.Error(err)
	}
}
