package zmtp

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
)

// benchmarkPair connects a PUSH of ours to a socket that only reads, or to a
// PULL of ours.
func benchmarkPair(b *testing.B, o Options) (*Conn, *Conn) {
	b.Helper()
	l, err := Listen("tcp://127.0.0.1:0", Options{Type: Pull})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	o.Type = Push
	push, err := Dial(context.Background(), l.Address(), o)
	if err != nil {
		b.Fatal(err)
	}
	pull, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = push.Close(atOnce()); _ = pull.Close(atOnce()) })
	return push, pull
}

// BenchmarkConn_Send queues and writes; the peer only reads. Where the reader
// is slower, the sender waits for the low mark, so the queue stays small.
func BenchmarkConn_Send(b *testing.B) {
	for _, size := range []int{100, 2 << 10, 40 << 10, 20 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			lowC := make(chan struct{}, 1)
			low := func() {
				select {
				case lowC <- struct{}{}:
				default:
				}
			}
			const high = 512 << 10
			push, pull := benchmarkPair(b, Options{HighWater: high, LowWater: high / 2, OnLowWater: low})
			go func() { _, _ = io.Copy(devNull{}, pull.nc.(*net.TCPConn)) }()
			body := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if err := push.Send(body); err != nil {
					b.Fatal(err)
				}
				if push.Queued() >= high {
					<-lowC
				}
			}
		})
	}
}

// devNull is an io.Writer without io.Discard's ReadFrom, so that io.Copy keeps
// to one buffer of ours.
type devNull struct{}

func (devNull) Write(b []byte) (int, error) { return len(b), nil }

// BenchmarkConn_Recv takes messages off a stream that is always full.
func BenchmarkConn_Recv(b *testing.B) {
	for _, size := range []int{100, 2 << 10, 40 << 10, 20 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			push, pull := benchmarkPair(b, Options{})
			frame := encode(string(make([]byte, size)))
			var block []byte
			for len(block) < 256<<10 {
				block = append(block, frame...)
			}
			go func() {
				for {
					if _, err := push.nc.Write(block); err != nil {
						return
					}
				}
			}()
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := pull.Recv(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkConn_RoundTrip is the latency of a message there and back between
// two idle connections of one process.
func BenchmarkConn_RoundTrip(b *testing.B) {
	l, err := Listen("tcp://127.0.0.1:0", Options{Type: Router})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	dealer, err := Dial(context.Background(), l.Address(), Options{Type: Dealer})
	if err != nil {
		b.Fatal(err)
	}
	router, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		for {
			frames, err := router.Recv()
			if err != nil || router.Send(frames...) != nil {
				return
			}
		}
	}()
	body := make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		if err := dealer.Send(body); err != nil {
			b.Fatal(err)
		}
		if _, err := dealer.Recv(); err != nil {
			b.Fatal(err)
		}
	}
	_ = dealer.Close(atOnce())
	_ = router.Close(atOnce())
}
