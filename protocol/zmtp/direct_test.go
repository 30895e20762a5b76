package zmtp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// pushPull is a PUSH connection and what receives its messages. leftC is closed when the last of them was received after
// the connection's end.
func pushPull(t *testing.T) (conn *Conn, pull *Puller, leftC chan struct{}) {
	t.Helper()
	leftC = make(chan struct{})
	pull, err := ListenPull("tcp://127.0.0.1:0", Options{OnLeave: func([]byte, error) { close(leftC) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pull.Close() })
	conn, err = Dial(t.Context(), pull.Address(), Options{Type: Push})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(conn) })
	return conn, pull, leftC
}

func closeNow(c *Conn) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.Close(ctx)
}

func TestConn_SendNow_LeavesNothingQueued(t *testing.T) {
	conn, pull, _ := pushPull(t)
	if err := conn.SendNow([]byte("a"), []byte("bc")); err != nil {
		t.Fatal(err)
	}
	if n := conn.Queued(); n != 0 {
		t.Errorf("%d bytes are queued after SendNow to a peer that reads, want 0", n)
	}
	got, err := pull.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if text := string(bytes.Join(got, []byte("|"))); text != "a|bc" {
		t.Errorf("received %q, want a|bc", text)
	}
	if sent := conn.Traffic(); sent.MessagesOut != 1 || sent.BytesOut < 7 {
		t.Errorf("traffic = %+v, want one message of 7 bytes besides the handshake", sent)
	}
}

// Senders of both kinds at once, to a peer that reads only when the kernel's buffers are full: each sender's messages come
// whole and in its own order.
func TestConn_SendNow_Order(t *testing.T) {
	conn, pull, _ := pushPull(t)
	const senders, each = 4, 2000
	body := bytes.Repeat([]byte("x"), 5000)
	var sending sync.WaitGroup
	for s := range senders {
		send := conn.Send
		if s%2 == 0 {
			send = conn.SendNow
		}
		sending.Go(func() {
			for n := range each {
				if err := send(fmt.Appendf(nil, "%d %d", s, n), body); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	sending.Wait()
	if conn.Queued() == 0 {
		t.Fatal("nothing is queued: the kernel took it all, and the test shows nothing")
	}
	next := make([]int, senders)
	for range senders * each {
		m, err := pull.Recv()
		if err != nil {
			t.Fatal(err)
		}
		var s, n int
		if _, err := fmt.Sscanf(string(m[0]), "%d %d", &s, &n); err != nil || n != next[s] || len(m[1]) != len(body) {
			t.Fatalf("received %q and %d bytes, want message %d of that sender and %d bytes: %v", m[0], len(m[1]), next[s], len(body), err)
		}
		next[s]++
	}
}

func TestConn_SendNow_AfterTheEnd(t *testing.T) {
	conn, _, _ := pushPull(t)
	closeNow(conn)
	if err := conn.SendNow([]byte("late")); !errors.Is(err, ErrClosed) {
		t.Errorf("SendNow on a closed connection = %v, want %v", err, ErrClosed)
	}
}

// A close while senders hand messages over themselves ends in time and loses none that was accepted before it.
func TestConn_SendNow_Close(t *testing.T) {
	conn, pull, leftC := pushPull(t)
	accepted := make(chan int, 1)
	go func() {
		n := 0
		for conn.SendNow([]byte("message")) == nil {
			n++
		}
		accepted <- n
	}()
	if _, err := pull.Recv(); err != nil {
		t.Fatal(err)
	}
	received := make(chan int, 1)
	go func() {
		n := 1
		for {
			if _, err := pull.Recv(); err != nil {
				received <- n
				return
			}
			n++
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := conn.Close(ctx); err != nil {
		t.Fatal(err)
	}
	want := <-accepted
	<-leftC
	_ = pull.Close()
	if got := <-received; got != want {
		t.Errorf("received %d messages, want the %d that were accepted", got, want)
	}
}
