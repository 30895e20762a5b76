package zmtp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"
)

// claim is the header of a frame that claims size bytes.
func claim(flags byte, size uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{flags | flagLong}, size)
}

// What a peer can send after a good handshake, and what ends its connection.
func TestHostile_Frames(t *testing.T) {
	tests := map[string]struct {
		bytes []byte
		fault string
	}{
		"reserved flag":         {[]byte{0x08, 0}, "frame flags 0x08"},
		"command with more":     {[]byte{flagCommand | flagMore, 5}, "frame flags 0x05"},
		"garbage":               {[]byte("GET / HTTP/1.1\r\n\r\n"), "frame flags 0x47"},
		"huge claim":            {claim(0, 1<<62), "message of more than 1000 bytes"},
		"negative claim":        {claim(0, 1<<64-1), "message of more than 1000 bytes"},
		"just over":             {claim(0, 1001), "message of more than 1000 bytes"},
		"over in two frames":    {append(encode("12", "")[:4], claim(0, 999)...), "(a frame of 999 after 2)"},
		"huge command":          {claim(flagCommand, maxCommand+1), "command of 65537 bytes"},
		"too many frames":       {bytes.Repeat([]byte{flagMore, 0}, 9), "message of more than 8 frames"},
		"empty command":         {[]byte{flagCommand, 0}, "empty command"},
		"nameless command":      {[]byte{flagCommand, 1, 0}, "command name of 0 bytes"},
		"overlong command name": {[]byte{flagCommand, 2, 9, 'x'}, "command name of 9 bytes"},
		"short PING":            {appendCommand(nil, commandPing, []byte{1}), "PING of 1 bytes"},
		"long PING":             {appendCommand(nil, commandPing, make([]byte, 19)), "PING of 19 bytes"},
		"ERROR":                 {appendCommand(nil, commandError, []byte("\x06reason")), `peer sent ERROR "reason"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, peer := scripted(t, Options{Type: Dealer, MaxMessage: 1000, MaxFrames: 8}, Router)
			write(t, peer, test.bytes)
			_, err := c.Recv()
			wantError(t, err, ErrProtocol, test.fault)
			await(t, "Done", c.Done())
		})
	}
}

func TestHostile_AtTheLimits(t *testing.T) {
	c, peer := scripted(t, Options{Type: Dealer, MaxMessage: 1000, MaxFrames: 8}, Router)
	write(t, peer, encode(string(make([]byte, 1000))))
	write(t, peer, append(bytes.Repeat([]byte{flagMore, 0}, 7), 0, 0))
	if got := receive(t, c); len(got) != 1 || len(got[0]) != 1000 {
		t.Errorf("message of %d frames, want one of 1000 bytes", len(got))
	}
	if got := receive(t, c); len(got) != 8 {
		t.Errorf("message of %d frames, want 8", len(got))
	}
}

// A claimed length reserves nothing: the buffer follows what really arrives.
func TestHostile_ClaimReservesNothing(t *testing.T) {
	c, peer := scripted(t, Options{Type: Dealer}, Router)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	write(t, peer, append(claim(0, DefaultMaxMessage), make([]byte, 1000)...))
	_ = peer.Close()
	_, err := c.Recv()
	wantError(t, err, io.ErrUnexpectedEOF, "peer closed the connection")
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("%d bytes were allocated for 1000 that arrived", grown)
	}
}

// Commands inside an unfinished message are held with it, up to a limit.
func TestHostile_PingsInsideAMessage(t *testing.T) {
	c, peer := scripted(t, Options{Type: Dealer}, Router)
	go func() { _, _ = io.Copy(io.Discard, peer) }()
	ping := appendCommand(nil, commandPing, []byte{0, 0}, make([]byte, maxContext))
	most := maxCommand / (len(ping) - headerSize(0) + maxHeaderSize)
	m := encode("first", "last")
	write(t, peer, m[:7])
	write(t, peer, bytes.Repeat(ping, most))
	write(t, peer, m[7:])
	if got := receive(t, c); len(got) != 2 || got[0] != "first" || got[1] != "last" {
		t.Errorf("message = %q, want first, last", got)
	}
	write(t, peer, m[:7])
	write(t, peer, bytes.Repeat(ping, most+1))
	_, err := c.Recv()
	wantError(t, err, ErrProtocol, "commands of more than 65536 bytes")
}

// A peer that sends PINGs and never reads doesn't fill our send queue.
func TestHostile_PingFlood(t *testing.T) {
	c, peer := scripted(t, Options{Type: Dealer}, Router)
	ping := appendCommand(nil, commandPing, []byte{0, 0}, make([]byte, maxContext))
	go func() {
		for range 500 {
			if _, err := peer.Write(bytes.Repeat(ping, 500)); err != nil {
				t.Error(err)
				return
			}
		}
		if _, err := peer.Write(encode("end")); err != nil {
			t.Error(err)
		}
	}()
	receive(t, c)
	if n := c.Queued(); n > 1<<10 {
		t.Errorf("%d bytes of PONG are queued, want one PONG and what is being written", n)
	}
}

// Handshakes that must fail, seen from the listening end.
func TestHostile_HandshakeAtListener(t *testing.T) {
	greeting, ready := appendGreeting(nil), appendReady(nil, Dealer, nil)
	tests := map[string]struct {
		bytes  []byte
		target error
		fault  string
	}{
		"ZMTP 1.0":          {[]byte{1, 0}, ErrProtocol, "ZMTP 1.0"},
		"ZMTP 2.0":          {[]byte{0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 1}, ErrProtocol, "ZMTP 2.0"},
		"HTTP":              {[]byte("GET / HTTP/1.1\r\n\r\n"), ErrProtocol, "not ZMTP"},
		"CURVE":             {greetingWith(mechanismAt, []byte("CURVE")...), ErrProtocol, `mechanism is "CURVE"`},
		"incompatible type": {appendReady(greeting, Pull, nil), ErrProtocol, `peer is "PULL"`},
		"unknown type":      {appendReady(greeting, "XYZZY", nil), ErrProtocol, `peer is "XYZZY"`},
		"long identity":     {appendReady(greeting, Dealer, make([]byte, 256)), ErrProtocol, "identity of 256 bytes"},
		"message first":     {append(bytes.Clone(greeting), encode("x")...), ErrProtocol, "message before READY"},
		"other command":     {appendCommand(bytes.Clone(greeting), "HELLO"), ErrProtocol, `command "HELLO", want READY`},
		"ERROR":             {appendCommand(bytes.Clone(greeting), commandError, []byte("\x02no")), ErrProtocol, `ERROR "no"`},
		"huge READY":        {append(bytes.Clone(greeting), claim(flagCommand, 1<<40)...), ErrProtocol, "command of"},
		"closed at once":    {nil, io.EOF, "greeting"},
		"greeting cut":      {greeting[:20], io.ErrUnexpectedEOF, "greeting"},
		"closed before":     {greeting, io.EOF, "ready"},
		"READY cut":         {append(bytes.Clone(greeting), ready[:9]...), io.ErrUnexpectedEOF, "ready"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rejectedC := make(chan error, 1)
			l := listen(t, "tcp://127.0.0.1:0", Options{Type: Router, OnReject: func(err error) { rejectedC <- err }})
			nc, err := net.Dial("tcp", hostPort(l.Address()))
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			write(t, nc, test.bytes)
			_ = nc.(*net.TCPConn).CloseWrite()
			wantError(t, await(t, "rejection", rejectedC), test.target, test.fault)
			dial(t, l.Address(), Options{Type: Dealer}) // the next peer is served
			accept(t, l)
		})
	}
}

func TestHostile_IncompatiblePeerIsTold(t *testing.T) {
	l := listen(t, "tcp://127.0.0.1:0", Options{Type: Router})
	nc, err := net.Dial("tcp", hostPort(l.Address()))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	write(t, nc, appendReady(appendGreeting(nil), Pull, nil))
	want := appendReady(appendGreeting(nil), Router, nil)
	want = appendCommand(want, commandError, []byte("\x18incompatible socket type"))
	if got := read(t, nc, len(want)); !bytes.Equal(got, want) {
		t.Errorf("peer got %q, want %q", got, want)
	}
}

func TestHostile_SilentPeersDelayNobody(t *testing.T) {
	rejectedC := make(chan error, 10)
	l := listen(t, "tcp://127.0.0.1:0", Options{
		Type: Router, HandshakeTimeout: 200 * time.Millisecond,
		OnReject: func(err error) { rejectedC <- err },
	})
	for range cap(rejectedC) {
		nc, err := net.Dial("tcp", hostPort(l.Address()))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		write(t, nc, appendGreeting(nil)[:11])
	}
	dealer := dial(t, l.Address(), Options{Type: Dealer})
	router := accept(t, l)
	send(t, dealer, "served")
	receive(t, router)
	for range cap(rejectedC) {
		if err := await(t, "time-out", rejectedC); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("rejection = %v, want a time-out", err)
		}
	}
}

func TestHostile_CloseWhileHandshaking(t *testing.T) {
	l := listen(t, "tcp://127.0.0.1:0", Options{Type: Router})
	nc, err := net.Dial("tcp", hostPort(l.Address()))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	read(t, nc, greetingSize) // so the handshake has begun
	if err := l.Close(); err != nil {
		t.Errorf("Close = %v, want nil", err)
	}
}

func TestHostile_TooManyWaiting(t *testing.T) {
	l := listen(t, "tcp://127.0.0.1:0", Options{Type: Router})
	setWaiting := func(n int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiting = n
	}
	setWaiting(maxWaiting)
	nc, err := net.Dial("tcp", hostPort(l.Address()))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	_ = nc.SetReadDeadline(time.Now().Add(patience))
	if n, err := nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("one connection too many got %d bytes, %v; want EOF", n, err)
	}
	setWaiting(0)
	dial(t, l.Address(), Options{Type: Dealer})
	accept(t, l)
}
