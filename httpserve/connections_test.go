package httpserve

import (
	"net"
	"os"
	"sync"
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
			}
			for range 20 {
				s.dial(text)
			}
			wantStatus(t, s.dial(get), 200)
			wantEnd(t, first)
		})
	}
}

// shortListener has no descriptors until one is given back.
type shortListener struct {
	net.Listener
	mu    sync.Mutex
	short bool
}

func (l *shortListener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.short {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	l.mu.Unlock()
	defer l.mu.Lock()
	return l.Listener.Accept()
}

func (l *shortListener) set(short bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.short = short
}

// TestPatient_MakesRoom closes a quiet connection when descriptors run out.
func TestPatient_MakesRoom(t *testing.T) {
	ln := &shortListener{Listener: listen(t)}
	s := start(t, ln, Limits{Open: 100}, hello)
	quiet := s.dial("")
	ln.set(true)
	wantStatus(t, s.dial(get), 200) // taken by the Accept that waited already
	wantEnd(t, quiet)
	ln.set(false)
	wantStatus(t, s.dial(get), 200)
}

func TestPatient_Stopped(t *testing.T) {
	ln := &shortListener{Listener: listen(t), short: true}
	defer ln.Close()
	stopC := make(chan struct{})
	close(stopC)
	if _, err := NewConnections(Limits{}).Patient(ln, stopC, "it", logs.Nop()).Accept(); err != net.ErrClosed {
		t.Errorf("Accept = %v, want that it is closed", err)
	}
}
