package zmtp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vllm-vcr/fuzzlimit"
)

// replay is the connection of a peer that says what it has to say and goes.
type replay struct {
	net.Conn // nil: nothing else is called
	says     io.Reader
}

func (r replay) Read(b []byte) (int, error)      { return r.says.Read(b) }
func (r replay) Write(b []byte) (int, error)     { return len(b), nil }
func (r replay) Close() error                    { return nil }
func (r replay) SetDeadline(time.Time) error     { return nil }
func (r replay) SetReadDeadline(time.Time) error { return nil }

// A peer's greeting and READY are accepted or refused with a reason, and what
// was accepted is compatible.
func FuzzHandshake(f *testing.F) {
	f.Add(appendReady(appendGreeting(nil), Router, nil))
	f.Add(appendReady(greetingWith(minorAt, 0), Dealer, []byte{0, 0}))
	f.Add(appendReady(appendGreeting(nil), Pull, nil))
	f.Add(appendCommand(appendGreeting(nil), commandError, []byte("\x02no")))
	f.Add(append(appendGreeting(nil), claim(flagCommand, 1<<63)...))
	f.Add(greetingWith(mechanismAt, []byte("CURVE")...))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	o := Options{Type: Dealer}
	f.Fuzz(func(t *testing.T, says []byte) {
		defer fuzzlimit.Watch(t, len(says))()
		r := newReader(bytes.NewReader(says), 1000, 8)
		p, err := handshake(replay{says: bytes.NewReader(nil)}, r, &o)
		switch {
		case err == nil && (o.Type.checkPeer(p.socketType) != nil || len(p.identity) > maxIdentity):
			t.Errorf("accepted %q with an identity of %d bytes", p.socketType, len(p.identity))
		case err != nil && !errors.Is(err, ErrProtocol) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			t.Errorf("error = %v, want the protocol or the end of input", err)
		}
	})
}

// Any stream ends in an error with no more memory than the limits allow, and
// the messages taken off it, encoded again, are read the same.
func FuzzReader(f *testing.F) {
	f.Add(encode("a", "", "b"), 1)
	f.Add(append(encode("x"), appendCommand(nil, commandPing, []byte{0, 1})...), 3)
	f.Add(append(claim(0, 3), "abc"...), 2)
	f.Add(append(encode("a", "b")[:3], appendCommand(nil, commandSubscribe, []byte("t"))...), 1)
	f.Add(claim(flagMore, 1<<63), 9)
	f.Add(bytes.Repeat([]byte{flagMore, 0}, 20), 7)
	f.Fuzz(func(t *testing.T, stream []byte, piece int) {
		defer fuzzlimit.Watch(t, len(stream))()
		messages := readAll(t, stream, piece)
		var again []byte
		for _, m := range messages {
			again = append(again, encode(m...)...)
		}
		if diff := cmp.Diff(messages, readAll(t, again, 1<<20)); diff != "" {
			t.Errorf("messages, read from their encoding (-want +got):\n%s", diff)
		}
	})
}

// readAll reads a stream that arrives in pieces.
func readAll(t *testing.T, stream []byte, piece int) [][]string {
	t.Helper()
	r := newReader(pieces{bytes.NewReader(stream), max(1, piece)}, 100_000, 8)
	c := &Conn{out: newQueue(&Options{})}
	r.command = c.command
	var messages [][]string
	for {
		frames, err := r.message()
		if err != nil {
			if len(r.buf) > max(readBuffer, 2*len(stream)) {
				t.Errorf("buffer of %d bytes for a stream of %d", len(r.buf), len(stream))
			}
			return messages
		}
		messages = append(messages, texts(frames))
	}
}

type pieces struct {
	io.Reader
	size int
}

func (p pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(p.size, len(b))]) }

// What parses as a command is the same after encoding, and nothing panics.
func FuzzCommand(f *testing.F) {
	for _, data := range []string{"", "\x00", "\x04PING\x00\x0actx", "\x09SUBSCRIBEtopic", "\x05ERROR\xffshort",
		"\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x02\x00\x00"} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		defer fuzzlimit.Watch(t, len(body))()
		name, data, err := parseCommand(body)
		if err != nil {
			return
		}
		frame := appendCommand(nil, string(name), data)
		if got := frame[headerSize(frame[0]):]; !bytes.Equal(got, body) {
			t.Errorf("encoded again = %q, want %q", got, body)
		}
		_ = parseError(data)
		if context, err := parsePing(data); err == nil && len(context) > maxContext {
			t.Errorf("PING context of %d bytes", len(context))
		}
		p, err := parseReady(data)
		if err != nil {
			return
		}
		frame = appendReady(nil, p.socketType, p.identity)
		_, data, err = parseCommand(frame[headerSize(frame[0]):])
		if err != nil {
			t.Fatalf("our READY: %v", err)
		}
		if again, err := parseReady(data); err != nil || again.socketType != p.socketType || !bytes.Equal(again.identity, p.identity) {
			t.Errorf("READY encoded again = %q, %v; want %q", again, err, p)
		}
	})
}
