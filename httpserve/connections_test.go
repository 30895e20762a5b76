package httpserve

import (
	"bufio"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"vllm-vcr/logs"
)

// fakeConn is a connection that only knows whether it was closed.
type fakeConn struct {
	net.Conn
	name   string
	closed bool
}

func (c *fakeConn) Close() error { c.closed = true; return nil }

// crowd is connections that are told of by hand.
type crowd struct {
	*Connections
	t    *testing.T
	open map[string]*fakeConn
}

func newCrowd(t *testing.T, l Limits) *crowd {
	return &crowd{NewConnections(l), t, map[string]*fakeConn{}}
}

func (c *crowd) tell(state fasthttp.ConnState, names ...string) {
	for _, name := range names {
		if c.open[name] == nil {
			c.open[name] = &fakeConn{name: name}
		}
		c.note(c.open[name], state)
		time.Sleep(time.Millisecond) // of a fake clock
	}
}

// wantClosed compares what was closed with names.
func (c *crowd) wantClosed(names ...string) {
	c.t.Helper()
	want := map[string]bool{}
	for _, name := range names {
		want[name] = true
	}
	for name, conn := range c.open {
		if conn.closed != want[name] {
			c.t.Errorf("%s closed = %v, want %v", name, conn.closed, want[name])
		}
	}
}

func TestConnections_Quietest(t *testing.T) {
	tests := map[string]struct {
		limits Limits
		do     func(*crowd)
		closed []string
	}{
		"within the limit": {Limits{Open: 3}, func(c *crowd) { c.tell(fasthttp.StateNew, "a", "b", "c") }, nil},
		"the first":        {Limits{Open: 2}, func(c *crowd) { c.tell(fasthttp.StateNew, "a", "b", "c") }, []string{"a"}},
		"one each":         {Limits{Open: 2}, func(c *crowd) { c.tell(fasthttp.StateNew, "a", "b", "c", "d") }, []string{"a", "b"}},
		"never the newest": {Limits{Open: 0}, func(c *crowd) { c.tell(fasthttp.StateNew, "a") }, nil},
		"a word counts": {Limits{Open: 2}, func(c *crowd) {
			c.tell(fasthttp.StateNew, "a", "b")
			c.tell(fasthttp.StateActive, "a")
			c.tell(fasthttp.StateNew, "c")
		}, []string{"b"}},
		"half a request is quiet": {Limits{Open: 2}, func(c *crowd) {
			c.tell(fasthttp.StateNew, "a", "b")
			c.tell(fasthttp.StateActive, "a", "b")
			c.tell(fasthttp.StateNew, "c")
		}, []string{"a"}},
		"not at work": {Limits{Open: 2}, func(c *crowd) {
			c.tell(fasthttp.StateNew, "a", "b")
			c.work(c.open["a"])
			c.tell(fasthttp.StateNew, "c")
		}, []string{"b"}},
		"all at work": {Limits{Open: 1}, func(c *crowd) {
			c.tell(fasthttp.StateNew, "a")
			c.work(c.open["a"])
			c.tell(fasthttp.StateNew, "b")
		}, nil},
		"idle again": {Limits{Open: 2}, func(c *crowd) {
			c.tell(fasthttp.StateNew, "a", "b")
			c.work(c.open["a"])
			c.tell(fasthttp.StateIdle, "a")
			c.tell(fasthttp.StateNew, "c")
		}, []string{"b"}},
		"gone by itself": {Limits{Open: 2}, func(c *crowd) {
			c.tell(fasthttp.StateNew, "a", "b")
			c.tell(fasthttp.StateClosed, "a")
			c.tell(fasthttp.StateNew, "c")
		}, nil},
		"spared": {Limits{Open: 1, Spared: time.Second}, func(c *crowd) {
			c.tell(fasthttp.StateNew, "a", "b")
			time.Sleep(time.Second)
			c.tell(fasthttp.StateNew, "c")
		}, []string{"a"}},
		"a shortage": {Limits{Open: 9, Spared: time.Second}, func(c *crowd) {
			c.tell(fasthttp.StateNew, "a", "b")
			c.makeRoom()
			time.Sleep(time.Second)
			c.makeRoom()
		}, []string{"a"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(t, tt.limits)
				tt.do(c)
				c.wantClosed(tt.closed...)
			})
		})
	}
}

// TestConnections_Quiet bounds the quiet ones also where there are descriptors for more.
func TestConnections_Quiet(t *testing.T) {
	c := NewConnections(Limits{Open: 1 << 20})
	var all []*fakeConn
	for range maxQuiet + 3 {
		conn := &fakeConn{}
		all = append(all, conn)
		c.note(conn, fasthttp.StateNew)
	}
	for i, conn := range all {
		if conn.closed != (i < 3) {
			t.Errorf("connection %d closed = %v, want the first three", i, conn.closed)
		}
	}
}

// TestConnections_Finish closes what waits at once, what has begun when it is done, and the rest at the end of the grace.
func TestConnections_Finish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, Limits{Open: 9})
		c.tell(fasthttp.StateNew, "new", "idle", "half", "done", "stuck")
		c.tell(fasthttp.StateIdle, "idle")
		c.tell(fasthttp.StateActive, "half", "done", "stuck")
		c.work(c.open["done"])
		c.work(c.open["stuck"])
		var overdue atomic.Bool
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			c.Finish(time.Second, func() { overdue.Store(true) })
		}()
		synctest.Wait()
		c.wantClosed("new", "idle")
		c.tell(fasthttp.StateClosed, "new", "idle")
		c.tell(fasthttp.StateIdle, "done")
		c.wantClosed("new", "idle", "done")
		c.tell(fasthttp.StateClosed, "done")
		if overdue.Load() {
			t.Error("overdue before the grace was over")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		c.wantClosed("new", "idle", "done", "half", "stuck")
		c.tell(fasthttp.StateClosed, "half", "stuck")
		<-finished
		if !overdue.Load() {
			t.Error("overdue was not called")
		}
	})
}

func TestConnections_Finish_Empty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		NewConnections(Limits{}).Finish(time.Hour, nil)
		if took := time.Since(begun); took != 0 {
			t.Errorf("took %v, want nothing", took)
		}
	})
}

func TestHalfOfDescriptors(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	}()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 100, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int]int{4096: 50, 50: 50, 49: 49, 1: 8} {
		if got := HalfOfDescriptors(most); got != want {
			t.Errorf("of 100, at most %d: %d, want %d", most, got, want)
		}
	}
}

// TestSite_Quiet has clients of every quiet kind fill a server: the next one is served.
func TestSite_Quiet(t *testing.T) {
	for name, text := range map[string]string{"nothing": "", "half a request": "GET / HT", "between requests": get} {
		t.Run(name, func(t *testing.T) {
			s := start(t, listen(t), Limits{Open: 4}, hello)
			first := s.dial(text)
			if text == get {
				wantStatus(t, first, 200)
				<-s.idleC
			}
			for range 20 {
				s.dial(text)
			}
			wantStatus(t, s.dial(get), 200)
			wantEnd(t, first)
		})
	}
}

// TestSite_LastRequest tells the client of the connection that is one too many that its answer is the last, where none is quiet.
func TestSite_LastRequest(t *testing.T) {
	atWork, release := make(chan struct{}), make(chan struct{})
	s := start(t, listen(t), Limits{Open: 1}, func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == "/slow" {
			close(atWork)
			<-release
		}
	})
	slow := s.dial("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
	<-atWork
	second := s.dial(get)
	answer, err := http.ReadResponse(bufio.NewReader(second), nil)
	if err != nil || !answer.Close {
		t.Errorf("the second answer = %+v, %v, want that it is the last", answer, err)
	}
	wantEnd(t, second)
	close(release)
	wantStatus(t, slow, 200)
}

// TestSite_FinishPipelined answers, at its end, both requests of a client that did not wait for the first answer.
func TestSite_FinishPipelined(t *testing.T) {
	atWork, release := make(chan struct{}), make(chan struct{})
	s := start(t, listen(t), Limits{Open: 9}, func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == "/slow" {
			close(atWork)
			<-release
		}
	})
	conn := s.dial("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n" + get)
	<-atWork
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		s.conns.Finish(10*time.Second, nil)
	}()
	for closing := false; !closing; {
		s.conns.mu.Lock()
		closing = s.conns.closing
		s.conns.mu.Unlock()
	}
	close(release)
	answers := bufio.NewReader(conn)
	for _, last := range []bool{false, true} {
		if a, err := http.ReadResponse(answers, nil); err != nil || a.StatusCode != 200 || a.Close != last {
			t.Errorf("answer %+v, %v, want 200 and last %v", a, err, last)
		}
	}
	wantEnd(t, conn)
	<-finished
}

// noDescriptors is a listener in a process that can open nothing.
type noDescriptors struct{ net.Listener }

func (noDescriptors) Accept() (net.Conn, error) {
	return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
}

// shortListener has no descriptors until one is given back. As the kernel's it fails when there is a client to accept, which
// stays in the queue. It is used by one goroutine.
type shortListener struct {
	net.Listener
	short atomic.Bool
	next  net.Conn // nil = none is waiting
}

func (l *shortListener) Accept() (net.Conn, error) {
	if l.next == nil {
		next, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l.next = next
	}
	if l.short.Load() {
		return noDescriptors{}.Accept()
	}
	next := l.next
	l.next = nil
	return next, nil
}

// TestPatient_MakesRoom closes a quiet connection when descriptors run out, and serves the client for whom they had.
func TestPatient_MakesRoom(t *testing.T) {
	ln := &shortListener{Listener: listen(t)}
	s := start(t, ln, Limits{Open: 100}, hello)
	quiet := s.dial(get)
	wantStatus(t, quiet, 200)
	ln.short.Store(true)
	next := s.dial(get)
	wantEnd(t, quiet)
	ln.short.Store(false)
	wantStatus(t, next, 200)
}

func TestPatient_Stopped(t *testing.T) {
	ln := noDescriptors{listen(t)}
	defer ln.Close()
	stopC := make(chan struct{})
	close(stopC)
	if _, err := NewConnections(Limits{}).Patient(ln, stopC, "it", logs.Nop()).Accept(); err != net.ErrClosed {
		t.Errorf("Accept = %v, want that it is closed", err)
	}
}
