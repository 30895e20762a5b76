package httpserve

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"vllm-vcr/logs"
)

// TestMain lets one goroutine pass: the one with which a stopped fasthttp server clears its worker pool ends on its own within
// 10 s.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// site is a running server of this package's parts.
type site struct {
	t     *testing.T
	conns *Connections
	addr  net.Addr
	stopC chan struct{}
	idleC chan struct{} // a connection has come to be between two requests; tells of the first one that nobody has taken
}

// start serves until the test ends. Unreadable requests are answered with their status.
func start(t *testing.T, ln net.Listener, limits Limits, handle fasthttp.RequestHandler) *site {
	t.Helper()
	s := &site{t, NewConnections(limits), ln.Addr(), make(chan struct{}), make(chan struct{}, 1)}
	server := &fasthttp.Server{
		Handler: handle, ReadTimeout: time.Minute, ReadBufferSize: 4096, MaxRequestBodySize: 1000,
		ErrorHandler: func(ctx *fasthttp.RequestCtx, err error) { ctx.SetStatusCode(Unreadable(ctx, err)) },
	}
	Harden(server, s.conns, logs.Nop())
	server.ConnState = s.tellIdle(server.ConnState)
	served := make(chan error, 1)
	go func() { served <- server.Serve(s.conns.Patient(ln, s.stopC, "the site", logs.Nop())) }()
	t.Cleanup(func() {
		close(s.stopC)
		_ = ln.Close() // the test may have closed it
		if err := <-served; err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
		s.conns.Finish(10*time.Second, nil)
	})
	return s
}

// tellIdle is note, and fills idleC.
func (s *site) tellIdle(note func(net.Conn, fasthttp.ConnState)) func(net.Conn, fasthttp.ConnState) {
	return func(conn net.Conn, state fasthttp.ConnState) {
		note(conn, state)
		if state != fasthttp.StateIdle {
			return
		}
		select {
		case s.idleC <- struct{}{}:
		default:
		}
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// hello answers every call with 200.
func hello(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("hello") }

// dial opens a connection and sends text on it.
func (s *site) dial(text string) net.Conn {
	s.t.Helper()
	conn, err := net.Dial(s.addr.Network(), s.addr.String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() }) // the test may have closed it
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

// wantStatus reads the beginning of an answer.
func wantStatus(t *testing.T, from io.Reader, status int) {
	t.Helper()
	got := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != fmt.Sprintf("HTTP/1.1 %d", status) {
		t.Errorf("answer %q, %v, want %d", got, err, status)
	}
}

// wantEnd waits until the other end has closed.
func wantEnd(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := io.Copy(io.Discard, conn)
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		t.Error("the connection is still open")
	}
}
