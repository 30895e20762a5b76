package zmtp

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConn_Exchange(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 300_000)
	messages := map[string][]string{
		"one frame":      {"hello"},
		"empty frame":    {""},
		"empty between":  {"a", "", "b"},
		"255 and 256":    {strings.Repeat("x", 255), strings.Repeat("y", 256)},
		"over a chunk":   {strings.Repeat("z", chunkSize+1)},
		"beyond buffers": {"head", big, "tail", big},
	}
	dealer, router := pair(t, Options{Type: Dealer, Identity: []byte{0, 0}}, Options{Type: Router})
	for name, want := range messages {
		t.Run(name, func(t *testing.T) {
			send(t, dealer, want...)
			send(t, dealer, "end")
			if diff := cmp.Diff(want, receive(t, router)); diff != "" {
				t.Errorf("message (-want +got):\n%.500s", diff)
			}
			if got := receive(t, router); !cmp.Equal(got, []string{"end"}) {
				t.Errorf("message after it = %q, want end", got)
			}
		})
	}
}

func TestConn_PeerFacts(t *testing.T) {
	dealer, router := pair(t, Options{Type: Dealer, Identity: []byte{0, 0}}, Options{Type: Router})
	if got := router.PeerIdentity(); !bytes.Equal(got, []byte{0, 0}) {
		t.Errorf("identity of the dealer = %x, want 0000", got)
	}
	if got := router.PeerType(); got != Dealer {
		t.Errorf("type of the dealer = %s, want DEALER", got)
	}
	if got := dealer.PeerIdentity(); len(got) != 0 {
		t.Errorf("identity of the router = %x, want none", got)
	}
	if got := dealer.PeerType(); got != Router {
		t.Errorf("type of the router = %s, want ROUTER", got)
	}
}

func TestConn_SendCopies(t *testing.T) {
	dealer, router := pair(t, Options{Type: Dealer}, Options{Type: Router})
	b := []byte("first")
	for _, text := range []string{"first", "other"} {
		copy(b, text)
		if err := dealer.Send(b); err != nil {
			t.Fatal(err)
		}
	}
	copy(b, "xxxxx")
	if got := append(receive(t, router), receive(t, router)...); !cmp.Equal(got, []string{"first", "other"}) {
		t.Errorf("messages = %q, want first, other", got)
	}
}

func TestConn_SendNothing(t *testing.T) {
	dealer, _ := pair(t, Options{Type: Dealer}, Options{Type: Router})
	if err := dealer.Send(); err == nil {
		t.Error("a message of no frames was accepted")
	}
}

func TestConn_RecvOnPush(t *testing.T) {
	push, _ := pair(t, Options{Type: Push}, Options{Type: Pull})
	if _, err := push.Recv(); err == nil {
		t.Error("Recv on a PUSH connection returned no error")
	}
}

func TestConn_Traffic(t *testing.T) {
	dealer, router := pair(t, Options{Type: Dealer}, Options{Type: Router})
	send(t, dealer, "12345")
	send(t, dealer, strings.Repeat("x", 300), "y")
	receive(t, router)
	receive(t, router)
	if err := dealer.Close(atOnce()); err != nil { // and so the writer has counted all it wrote
		t.Fatal(err)
	}
	const wire = 2 + 5 + 9 + 300 + 2 + 1
	handshake := len(appendReady(appendGreeting(nil), Dealer, nil))
	sent, got := dealer.Traffic(), router.Traffic()
	if sent.BytesOut != wire || sent.MessagesOut != 2 {
		t.Errorf("sender's traffic = %+v, want %d bytes and 2 messages out", sent, wire)
	}
	if want := uint64(handshake + wire); got.BytesIn != want || got.MessagesIn != 2 {
		t.Errorf("receiver's traffic = %+v, want %d bytes and 2 messages in", got, want)
	}
	if n := dealer.Queued(); n != 0 {
		t.Errorf("queued = %d after all was received, want 0", n)
	}
}

// chopped is a connection that reads and writes one byte at a time.
type chopped struct{ net.Conn }

func (c chopped) Read(b []byte) (int, error) { return c.Conn.Read(b[:min(1, len(b))]) }

func (c chopped) Write(b []byte) (int, error) {
	for i := range b {
		if n, err := c.Conn.Write(b[i : i+1]); err != nil {
			return i + n, err
		}
	}
	return len(b), nil
}

func TestConn_Chopped(t *testing.T) {
	a, b := sockets(t)
	o, err := Options{Type: Dealer}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	firstC := make(chan *Conn, 1)
	go func() {
		c, err := newConn(chopped{a}, "a", o)
		if err != nil {
			t.Error(err)
		}
		firstC <- c
	}()
	second, err := newConn(chopped{b}, "b", o)
	if err != nil {
		t.Fatal(err)
	}
	first := await(t, "handshake", firstC)
	defer second.Close(atOnce())
	defer first.Close(atOnce())
	want := []string{"a", strings.Repeat("b", 1000), ""}
	for range 3 {
		send(t, first, want...)
	}
	for range 3 {
		if diff := cmp.Diff(want, receive(t, second)); diff != "" {
			t.Errorf("message (-want +got):\n%s", diff)
		}
	}
}

// Messages of every size around the buffers' edges keep their order and bytes.
func TestConn_RandomSizes(t *testing.T) {
	push, pull := pair(t, Options{Type: Push}, Options{Type: Pull})
	const messages = 2000
	sizes := rand.New(rand.NewPCG(1, 2))
	go func() {
		body := bytes.Repeat([]byte{7}, 3*readBuffer)
		for i := range messages {
			binary.BigEndian.PutUint32(body, uint32(i))
			if err := push.Send(body[:4+sizes.IntN(300)], body[:sizes.IntN(len(body))]); err != nil {
				t.Error(err)
			}
		}
	}()
	for i := range messages {
		frames, err := pull.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if got := binary.BigEndian.Uint32(frames[0]); got != uint32(i) || len(frames) != 2 {
			t.Fatalf("message %d: number %d, %d frames; want the same number and 2 frames", i, got, len(frames))
		}
		if rest := frames[1][min(4, len(frames[1])):]; bytes.Count(rest, []byte{7}) != len(rest) {
			t.Fatalf("message %d: %d bytes are not those sent", i, len(rest))
		}
	}
}

func TestConn_PingAnswered(t *testing.T) {
	ping := appendCommand(nil, commandPing, []byte{0, 10}, []byte("context"))
	pong := appendCommand(nil, commandPong, []byte("context"))
	t.Run("while Recv waits", func(t *testing.T) {
		c, peer := scripted(t, Options{Type: Dealer}, Router)
		write(t, peer, append(ping, encode("x")...))
		receive(t, c)
		if got := read(t, peer, len(pong)); !bytes.Equal(got, pong) {
			t.Errorf("answer = %q, want %q", got, pong)
		}
	})
	t.Run("by PUSH on its own", func(t *testing.T) {
		_, peer := scripted(t, Options{Type: Push}, Pull)
		write(t, peer, ping)
		if got := read(t, peer, len(pong)); !bytes.Equal(got, pong) {
			t.Errorf("answer = %q, want %q", got, pong)
		}
	})
	t.Run("between frames of a message", func(t *testing.T) {
		c, peer := scripted(t, Options{Type: Dealer}, Router)
		m := encode("first", "second", "third")
		first := len(encode("first"))
		second := first + len(encode("second"))
		b := append([]byte{}, m[:first]...)
		b = append(append(b, ping...), m[first:second]...)
		b = append(append(append(b, ping...), ping...), m[second:]...)
		write(t, peer, append(b, encode("next")...))
		if diff := cmp.Diff([]string{"first", "second", "third"}, receive(t, c)); diff != "" {
			t.Errorf("message (-want +got):\n%s", diff)
		}
		if got := receive(t, c); !cmp.Equal(got, []string{"next"}) {
			t.Errorf("next message = %q, want next", got)
		}
		read(t, peer, len(pong))
	})
}

func TestConn_UnknownCommandIgnored(t *testing.T) {
	c, peer := scripted(t, Options{Type: Dealer}, Router)
	write(t, peer, appendCommand(nil, "NOVEL", []byte("data")))
	write(t, peer, appendCommand(nil, commandPong))
	write(t, peer, appendCommand(nil, commandSubscribe, []byte("not for a DEALER")))
	write(t, peer, encode("x"))
	if got := receive(t, c); !cmp.Equal(got, []string{"x"}) {
		t.Errorf("message = %q, want x", got)
	}
}

func TestConn_PeerLeaves(t *testing.T) {
	t.Run("between messages", func(t *testing.T) {
		c, peer := scripted(t, Options{Type: Dealer}, Router)
		write(t, peer, encode("last"))
		_ = peer.Close()
		receive(t, c)
		_, err := c.Recv()
		wantError(t, err, io.EOF, "peer closed the connection")
		await(t, "Done", c.Done())
		wantError(t, c.Err(), io.EOF, c.address)
		wantError(t, c.Send([]byte("x")), io.EOF, "peer closed the connection")
	})
	t.Run("inside a message", func(t *testing.T) {
		c, peer := scripted(t, Options{Type: Dealer}, Router)
		m := encode("a", "b")
		write(t, peer, m[:len(m)-1])
		_ = peer.Close()
		_, err := c.Recv()
		wantError(t, err, io.ErrUnexpectedEOF, "peer closed the connection")
	})
	t.Run("reset", func(t *testing.T) {
		c, peer := scripted(t, Options{Type: Dealer}, Router)
		_ = peer.(*net.TCPConn).SetLinger(0)
		_ = peer.Close()
		_, err := c.Recv()
		if c.Err() == nil || err == nil {
			t.Errorf("Recv = %v, Err = %v, want errors", err, c.Err())
		}
	})
	t.Run("PUSH notices by itself", func(t *testing.T) {
		c, peer := scripted(t, Options{Type: Push}, Pull)
		_ = peer.Close()
		await(t, "Done", c.Done())
		wantError(t, c.Err(), io.EOF, "peer closed the connection")
	})
	t.Run("half closed", func(t *testing.T) {
		c, peer := scripted(t, Options{Type: Push}, Pull)
		_ = peer.(*net.TCPConn).CloseWrite()
		await(t, "Done", c.Done())
	})
}

func TestConn_ErrBeforeTheEnd(t *testing.T) {
	c, _ := pair(t, Options{Type: Push}, Options{Type: Pull})
	if err := c.Err(); err != nil {
		t.Errorf("Err = %v while the connection lives, want nil", err)
	}
}
