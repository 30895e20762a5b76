package zmtp

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestConn_Close_Flushes(t *testing.T) {
	for _, unread := range []bool{false, true} {
		name := "quiet"
		if unread {
			name = "with unread input" // which would make the kernel reset the connection
		}
		t.Run(name, func(t *testing.T) {
			dealer, router := pair(t, Options{Type: Dealer}, Options{Type: Router})
			if unread {
				send(t, router, strings.Repeat("never read", 100))
			}
			const messages = 100_000
			body := make([]byte, 100)
			for i := range messages {
				binary.BigEndian.PutUint32(body, uint32(i))
				if err := dealer.Send(body); err != nil {
					t.Fatal(err)
				}
			}
			closedC := make(chan error, 1)
			go func() { closedC <- dealer.Close(within(t)) }()
			for i := range messages {
				frames, err := router.Recv()
				if err != nil {
					t.Fatalf("message %d: %v", i, err)
				}
				if got := binary.BigEndian.Uint32(frames[0]); got != uint32(i) {
					t.Fatalf("message %d has number %d", i, got)
				}
			}
			if _, err := router.Recv(); !errors.Is(err, io.EOF) {
				t.Errorf("after the last message: %v, want EOF", err)
			}
			if err := await(t, "Close", closedC); err != nil {
				t.Errorf("Close = %v, want nil", err)
			}
			if !errors.Is(dealer.Err(), ErrClosed) {
				t.Errorf("Err = %v, want closed", dealer.Err())
			}
		})
	}
}

// readAway receives until the connection ends.
func readAway(c *Conn) {
	for {
		if _, err := c.Recv(); err != nil {
			return
		}
	}
}

func TestConn_Close_EndsRecvAndSend(t *testing.T) {
	dealer, router := pair(t, Options{Type: Dealer}, Options{Type: Router})
	recvC := make(chan error, 1)
	go func() { _, err := dealer.Recv(); recvC <- err }()
	go readAway(router)
	send(t, dealer, "x")
	if err := dealer.Close(within(t)); err != nil {
		t.Errorf("Close = %v, want nil", err)
	}
	if err := await(t, "Recv's return", recvC); !errors.Is(err, ErrClosed) {
		t.Errorf("Recv = %v, want closed", err)
	}
	if err := dealer.Send([]byte("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("Send = %v, want closed", err)
	}
	if _, err := dealer.Recv(); !errors.Is(err, ErrClosed) {
		t.Errorf("Recv = %v, want closed", err)
	}
}

func TestConn_Close_ManyTimes(t *testing.T) {
	dealer, router := pair(t, Options{Type: Dealer}, Options{Type: Router})
	send(t, dealer, "x")
	go readAway(router)
	var closing sync.WaitGroup
	for range 8 {
		closing.Go(func() {
			if err := dealer.Close(within(t)); err != nil {
				t.Errorf("Close = %v, want nil", err)
			}
		})
	}
	closing.Wait()
	await(t, "Done", dealer.Done())
}

func TestConn_Close_GivesUpOnAStuckPeer(t *testing.T) {
	push, peer := scripted(t, Options{Type: Push}, Pull)
	fill := make([]byte, 1<<20)
	for range 64 { // more than the kernel takes for a peer that doesn't read
		if err := push.Send(fill); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := push.Close(ctx)
	wantError(t, err, context.DeadlineExceeded, "bytes unsent")
	if push.Queued() == 0 {
		t.Error("queued = 0 after Close gave up, want what was lost")
	}
	_ = peer.Close()
}

// A peer that keeps its half open holds Close up for lingerTime and no longer.
func TestConn_Close_PeerKeepsItsHalfOpen(t *testing.T) {
	push, peer := scripted(t, Options{Type: Push}, Pull)
	send(t, push, "last")
	closedC := make(chan error, 1)
	go func() { closedC <- push.Close(within(t)) }()
	read(t, peer, len(encode("last")))
	if err := await(t, "Close", closedC); err != nil {
		t.Errorf("Close = %v, want nil", err)
	}
}

func TestConn_Close_PeerDiesMeanwhile(t *testing.T) {
	push, peer := scripted(t, Options{Type: Push}, Pull)
	for range 64 {
		if err := push.Send(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	closedC := make(chan error, 1)
	go func() { closedC <- push.Close(within(t)) }()
	_ = peer.(*net.TCPConn).SetLinger(0)
	_ = peer.Close()
	if err := await(t, "Close", closedC); err == nil || !strings.Contains(err.Error(), "bytes unsent") {
		t.Errorf("Close = %v, want the number of bytes unsent", err)
	}
}

// A peer that reads nothing costs so much memory and no more, and then its connection.
func TestConn_MaxQueued(t *testing.T) {
	const most = 4 << 20
	push, _ := scripted(t, Options{Type: Push, MaxQueued: most}, Pull)
	var err error
	for range 100 { // the kernel takes some of them
		if err = push.Send(make([]byte, 1<<20)); err != nil {
			break
		}
		if n := push.Queued(); n > most+10 {
			t.Fatalf("%d bytes are queued, want at most %d and a header's", n, most)
		}
	}
	wantError(t, err, ErrBehind, "want at most 4194304")
	<-push.Done()
	wantError(t, push.Err(), ErrBehind, "does not read")
	wantError(t, push.Send([]byte("more")), ErrBehind, "does not read")
}

func TestConn_LowWater(t *testing.T) {
	lowC := make(chan struct{}, 100)
	push, peer := scripted(t, Options{
		Type: Push, HighWater: 8 << 20, LowWater: 4 << 20,
		OnLowWater: func() { lowC <- struct{}{} },
	}, Pull)
	const messages, size = 40, 1 << 20
	for range messages {
		if err := push.Send(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	if n := push.Queued(); n < 8<<20 {
		t.Fatalf("queued = %d of 40 MiB, want the kernel to take less than 32 MiB", n)
	}
	read(t, peer, messages*(maxHeaderSize+size))
	await(t, "low mark", lowC)
	if err := push.Close(atOnce()); err != nil {
		t.Errorf("Close = %v, want nil: everything was read", err)
	}
	if len(lowC) != 0 {
		t.Errorf("low mark told %d times more, want once", len(lowC))
	}
}
