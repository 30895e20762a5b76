package control

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/httpserve"
	"vllm-vcr/ipc"
	"vllm-vcr/logs"
)

// Nothing that clients leave open holds the stop up: not idle ones, nor silent ones, nor half a request for longer than
// the grace.
func TestServer_Stop_OpenConnections(t *testing.T) {
	a := start(t, readyFleet(), nil, Options{})
	a.call(t, "GET", "/config", "") // leaves an idle connection
	silent, half := a.dial(t), a.dial(t)
	fmt.Fprint(half, "GET /config HT")
	begun := time.Now()
	a.Stop()
	a.Stop()
	<-a.doneC
	if took := time.Since(begun); took > stopGrace+time.Second {
		t.Errorf("the stop took %v, want at most about %v", took, stopGrace)
	}
	for _, conn := range []net.Conn{silent, half} {
		if _, err := conn.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
			t.Errorf("a connection is still open: %v", err)
		}
	}
	if _, err := net.Dial("tcp", a.addr); err == nil {
		t.Error("the port still takes connections")
	}
}

// A call at work gets its answer out.
func TestServer_Stop_RunningCall(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	fleet := &fakeFleet{StatsFunc: func(context.Context) (ipc.Stats, error) {
		close(entered)
		<-leave
		return ipc.Stats{Received: 5}, nil
	}}
	a := start(t, fleet, nil, Options{})
	answer := make(chan reply, 1)
	go func() { answer <- a.call(t, "GET", "/stats", "") }()
	<-entered
	a.Stop()
	close(leave)
	if got := <-answer; got.status != 200 || !strings.Contains(got.body, `"requests_received":5`) {
		t.Errorf("answer = %d %s, want 200 with 5", got.status, got.body)
	}
	<-a.doneC
}

// A call that outlives the grace loses its context, so that its goroutine ends too.
func TestServer_Stop_StuckCall(t *testing.T) {
	entered, left := make(chan struct{}), make(chan struct{})
	fleet := &fakeFleet{StatsFunc: func(ctx context.Context) (ipc.Stats, error) {
		close(entered)
		<-ctx.Done()
		close(left)
		return ipc.Stats{}, ctx.Err()
	}}
	a := start(t, fleet, nil, Options{Timeout: time.Hour})
	conn := a.dial(t)
	fmt.Fprint(conn, "GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n")
	<-entered
	begun := time.Now()
	a.Stop()
	<-a.doneC
	<-left
	if took := time.Since(begun); took < stopGrace || took > stopGrace+2*time.Second {
		t.Errorf("the stop took %v, want about %v", took, stopGrace)
	}
}

func TestServer_Stop_BeforeServe(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(readyFleet(), nil, Options{})
	s.Stop()
	if err := s.Serve(ln); err != nil {
		t.Errorf("Serve = %v, want nil", err)
	}
}

func TestServer_ListenerBreaks(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(readyFleet(), nil, Options{})
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(ln); err == nil || !strings.HasPrefix(err.Error(), "control API: ") {
		t.Errorf("Serve = %v, want an error of the control API", err)
	}
}

// shortListener fails with err before it works.
type shortListener struct {
	net.Listener
	mu    sync.Mutex
	fails int
	err   error
}

func (l *shortListener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails > 0 {
		l.fails--
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", l.err)}
	}
	return l.Listener.Accept()
}

// Running out of descriptors is waited out, and said once.
func TestServer_Shortage(t *testing.T) {
	var out bytes.Buffer
	filter, err := logs.ParseFilter("info")
	if err != nil {
		t.Fatal(err)
	}
	root := logs.New(&out, logs.JSON, filter)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(readyFleet(), nil, Options{Log: root.Target(logs.Control)})
	served := make(chan error, 1)
	go func() { served <- s.Serve(&shortListener{Listener: ln, fails: 3, err: syscall.EMFILE}) }()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "GET /config HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	if got := readAll(t, conn); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Errorf("answer = %q, want 200", got)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	s.Stop()
	if err := <-served; err != nil {
		t.Errorf("Serve = %v, want nil", err)
	}
	if err := root.Close(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "cannot accept connections"); got != 1 {
		t.Errorf("%d warnings, want 1", got)
	}
}

func TestServer_Shortage_Stop(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(readyFleet(), nil, Options{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(&shortListener{Listener: ln, fails: 1 << 40, err: syscall.EMFILE}) }()
	s.Stop()
	if err := <-served; err != nil {
		t.Errorf("Serve = %v, want nil", err)
	}
}

// Many clients at once change and read: every answer is one whole state.
func TestServer_Concurrent(t *testing.T) {
	var mu sync.Mutex
	live := config.Default().Live
	fleet := &fakeFleet{
		PatchFunc: func(_ context.Context, p config.Patch) (config.Live, error) {
			mu.Lock()
			defer mu.Unlock()
			next, err := p.Apply(live)
			live = next
			return next, err
		},
		ConfigFunc: func(context.Context) (config.Live, error) {
			mu.Lock()
			defer mu.Unlock()
			return live.Clone(), nil
		},
	}
	a := start(t, fleet, nil, Options{})
	var wg sync.WaitGroup
	for client := range 16 {
		wg.Go(func() {
			for i := range 20 {
				n := client*100 + i + 1
				body := fmt.Sprintf(`{"max_num_seqs":%d,"max_model_len":%d}`, n, n)
				if got := a.call(t, "PATCH", "/config", body); !strings.Contains(got.body, fmt.Sprintf(`"max_num_seqs":%d,`, n)) {
					t.Errorf("answer = %d %s, want max_num_seqs %d", got.status, got.body, n)
				}
				checkWhole(t, a.call(t, "GET", "/config", ""))
			}
		})
	}
	wg.Wait()
}

// checkWhole wants the two settings that are always patched together to be equal.
func checkWhole(t *testing.T, got reply) {
	t.Helper()
	var seqs, length int
	_, rest, _ := strings.Cut(got.body, `"max_num_seqs":`)
	if _, err := fmt.Sscanf(rest, "%d", &seqs); err != nil {
		t.Error(err)
	}
	_, rest, _ = strings.Cut(got.body, `"max_model_len":`)
	if _, err := fmt.Sscanf(rest, "%d", &length); err != nil {
		t.Error(err)
	}
	if seqs != length && length != 0 {
		t.Errorf("max_num_seqs = %d, max_model_len = %d, want the same", seqs, length)
	}
}

// Clients that say nothing don't keep others out: the one that has been quiet for longest makes room.
func TestServer_QuietClients(t *testing.T) {
	a := start(t, readyFleet(), nil, Options{}, func(s *Server) {
		s.conns = httpserve.NewConnections(httpserve.Limits{Open: 8})
		httpserve.Harden(s.http, s.conns, s.log)
	})
	var quiet []net.Conn
	for range 30 {
		quiet = append(quiet, a.dial(t))
	}
	if got := a.call(t, "GET", "/config", ""); got.status != 200 {
		t.Errorf("GET /config beside quiet clients = %d, want 200", got.status)
	}
	if _, err := quiet[0].Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the first quiet client reads %v, want EOF", err)
	}
}

// So it is with clients that begin a request and never end it.
func TestServer_HalfRequests(t *testing.T) {
	a := start(t, readyFleet(), nil, Options{}, func(s *Server) {
		s.conns = httpserve.NewConnections(httpserve.Limits{Open: 8})
		httpserve.Harden(s.http, s.conns, s.log)
	})
	var half []net.Conn
	for range 30 {
		conn := a.dial(t)
		fmt.Fprint(conn, "PATCH /config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
		half = append(half, conn)
	}
	if got := a.call(t, "GET", "/config", ""); got.status != 200 {
		t.Errorf("GET /config beside half requests = %d, want 200", got.status)
	}
	if _, err := half[0].Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("the first half request reads %v, want the end of its connection", err)
	}
}
