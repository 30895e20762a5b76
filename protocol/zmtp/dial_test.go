package zmtp

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDial_FaultsAtOnce(t *testing.T) {
	tests := map[string]struct {
		address string
		options Options
		fault   string
	}{
		"bad address":   {"tcp:/127.0.0.1:1", Options{Type: Dealer}, "want tcp://host:port"},
		"port 0":        {"tcp://127.0.0.1:0", Options{Type: Dealer}, "want a host and a port"},
		"every host":    {"tcp://*:80", Options{Type: Dealer}, "want a host and a port"},
		"wrong options": {"tcp://127.0.0.1:1", Options{Type: "X"}, `dial tcp://127.0.0.1:1: socket type "X"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Dial(within(t), test.address, test.options)
			if err == nil || !strings.Contains(err.Error(), test.fault) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error = %v, want one that says %q, at once", err, test.fault)
			}
		})
	}
}

func TestDial_IncompatiblePeerAtOnce(t *testing.T) {
	l := listen(t, "tcp://127.0.0.1:0", Options{Type: Router})
	_, err := Dial(within(t), l.Address(), Options{Type: Push})
	wantError(t, err, ErrProtocol, "a PUSH socket wants one of PULL")
}

func TestDial_GivesUpWithBothCauses(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "tcp://" + ln.Addr().String()
	_ = ln.Close() // nobody listens there
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = Dial(ctx, address, Options{Type: Dealer})
	wantError(t, err, context.DeadlineExceeded, "dial "+address)
	wantError(t, err, syscall.ECONNREFUSED, "last attempt")
}

func TestDial_WaitsForThePeer(t *testing.T) {
	for name, address := range map[string]string{"refused": "", "no such path": "ipc://" + t.TempDir() + "/late"} {
		t.Run(name, func(t *testing.T) {
			if address == "" {
				l := listen(t, "tcp://127.0.0.1:0", Options{Type: Router})
				address = l.Address()
				_ = l.Close()
			}
			dialledC := make(chan *Conn, 1)
			go func() {
				c, err := Dial(within(t), address, Options{Type: Dealer})
				if err != nil {
					t.Error(err)
				}
				dialledC <- c
			}()
			l := listen(t, address, Options{Type: Router})
			accept(t, l)
			_ = await(t, "connection", dialledC).Close(atOnce())
		})
	}
}

// A peer that goes before its READY may be one that restarts: it is dialled
// again.
func TestDial_PeerGoesDuringHandshake(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialledC := make(chan *Conn, 1)
	go func() {
		c, err := Dial(within(t), "tcp://"+ln.Addr().String(), Options{Type: Dealer})
		if err != nil {
			t.Error(err)
		}
		dialledC <- c
	}()
	for _, whole := range []bool{false, false, true} {
		nc, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if !whole {
			write(t, nc, appendGreeting(nil))
			_ = nc.Close()
			continue
		}
		write(t, nc, appendReady(appendGreeting(nil), Router, nil))
	}
	_ = await(t, "connection", dialledC).Close(atOnce())
}

func TestDial_CancelledDuringHandshake(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	reason := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(t.Context())
	errC := make(chan error, 1)
	go func() {
		_, err := Dial(ctx, "tcp://"+ln.Addr().String(), Options{Type: Dealer})
		errC <- err
	}()
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	read(t, nc, greetingSize) // and say nothing
	cancel(reason)
	if err := await(t, "Dial's return", errC); !errors.Is(err, reason) {
		t.Errorf("error = %v, want the cause of the cancellation", err)
	}
}

func TestDial_CancelledBefore(t *testing.T) {
	if _, err := Dial(atOnce(), "tcp://127.0.0.1:1", Options{Type: Dealer}); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want that of the context", err)
	}
}

func TestDial_ContextEndsLater(t *testing.T) {
	l := listen(t, "tcp://127.0.0.1:0", Options{Type: Router})
	ctx, cancel := context.WithCancel(t.Context())
	dealer, err := Dial(ctx, l.Address(), Options{Type: Dealer})
	if err != nil {
		t.Fatal(err)
	}
	defer dealer.Close(atOnce())
	cancel()
	router := accept(t, l)
	send(t, dealer, "still here")
	receive(t, router)
}

func TestDial_NoDelay(t *testing.T) {
	dealer, router := pair(t, Options{Type: Dealer}, Options{Type: Router})
	for name, c := range map[string]*Conn{"dialled": dealer, "accepted": router} {
		rc, err := c.nc.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var on int
		if cerr := rc.Control(func(fd uintptr) {
			on, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_NODELAY)
		}); cerr != nil || err != nil {
			t.Fatal(cerr, err)
		}
		if on == 0 {
			t.Errorf("%s: TCP_NODELAY is off", name)
		}
	}
}

func TestRetry_Backoff(t *testing.T) {
	const ms = time.Millisecond
	tests := map[string]struct {
		most time.Duration
		want []time.Duration // between attempts, within 3.5 s
	}{
		"default":         {DefaultMaxBackoff, []time.Duration{0, 10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, time.Second, time.Second}},
		"chosen":          {1500 * ms, []time.Duration{0, 10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, 1280 * ms}},
		"below the first": {5 * ms, slices.Concat([]time.Duration{0}, slices.Repeat([]time.Duration{5 * ms}, 699))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 3500*ms-1)
				defer cancel()
				refused := errors.New("refused")
				var gaps []time.Duration
				last := time.Now()
				_, err := retry(ctx, test.most, func() (*Conn, error) {
					gaps = append(gaps, time.Since(last))
					last = time.Now()
					return nil, refused
				})
				if diff := cmp.Diff(test.want, gaps); diff != "" {
					t.Errorf("gaps between attempts (-want +got):\n%s", diff)
				}
				wantError(t, err, refused, "last attempt: refused")
				wantError(t, err, context.DeadlineExceeded, "deadline")
			})
		})
	}
}
