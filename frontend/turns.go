package frontend

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// turns bound how many requests are made ready for the engines at once. A crowd that comes at once waits for its turns, each
// request having cost no more than the reading of its bytes, so that who asks for less, for the health say, is not behind
// all of its tokens and JSON. There are more turns than cores: a few long prompts don't hold up the short ones.
type turns struct {
	takenC chan struct{} // holds one for each turn that is taken; never closed
	signal *os.File
	source *os.File
	news   syscall.RawConn // of source, which is readable after a write to signal

	mu    sync.Mutex
	asked time.Time // when the runtime was last seen to ask the kernel for news
}

const (
	turnCount  = 16
	letInEvery = time.Millisecond
)

func newTurns() (*turns, error) {
	source, signal, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("turns: %w", err)
	}
	news, err := source.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("turns: %w", err)
	}
	return &turns{takenC: make(chan struct{}, turnCount), signal: signal, news: news, source: source}, nil
}

// take waits for a turn. Who had to wait lets in first what the kernel has for us.
func (t *turns) take() {
	select {
	case t.takenC <- struct{}{}:
	default:
		t.takenC <- struct{}{}
		t.letIn()
	}
}

func (t *turns) give() { <-t.takenC }

// letIn waits, once in a while, until the runtime has asked the kernel for news of connections, by waiting for some itself. The
// runtime asks when nothing can run, and otherwise once in 10 ms, for 128 connections at most. In a crowd that hands its turns on
// somebody can always run: a probe that comes behind 5,000 requests would be noticed 390 ms later. So all who have to wait
// for their turns wait for this too.
func (t *turns) letIn() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.asked) < letInEvery {
		return
	}
	told := false
	_ = t.news.Read(func(fd uintptr) bool { // it fails when the server has ended: nobody is to be let in
		b := []byte{0}
		if !told {
			told = true
			_, err := t.signal.Write(b)
			return err != nil
		}
		_, err := unix.Read(int(fd), b)
		return err != unix.EAGAIN
	})
	t.asked = time.Now()
}

// close may be called while turns are taken.
func (t *turns) close() {
	_ = t.signal.Close() // nothing is buffered
	_ = t.source.Close()
}

// inTurn has h wait for a turn, which ends when its request is at the engines, or without one when h returns.
func inTurn(h handler) handler {
	return func(s *Server, c *call) error {
		s.turns.take()
		c.inTurn = true
		defer c.endTurn()
		return h(s, c)
	}
}

// endTurn may be called more than once.
func (c *call) endTurn() {
	if c.inTurn {
		c.inTurn = false
		c.server.turns.give()
	}
}
