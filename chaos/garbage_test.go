//go:build chaos

package chaos

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"

	"vllm-vcr/proctest"
	"vllm-vcr/protocol/enginecore"
)

// F49: messages that are none.
func TestF49_Garbage(t *testing.T) {
	r := newRude(t)
	p := launch{}.start(t, playArgs(r.handshake.Address(), 1)...)
	p.awaitControl(t)
	identity := r.join(r.input.Address())
	p.awaitState(t, patience, 0, "ready")
	pid := p.engines(t)[0].PID
	before, _ := resident(t, pid)
	add := []byte{enginecore.FrameAdd}
	good := encoded("good")
	huge := append([]byte{0xdd}, binary.BigEndian.AppendUint32(nil, 1<<32-1)...)
	messages := [][][]byte{
		{{}}, {add}, {{0, 0}, good}, {{9}, good}, {{255}}, {{}, {}, {}, {}},
		{add, {}}, {add, {0xc1}}, {add, good[:3]}, {add, {0x80}}, {add, {0xc0}},
		{add, bytes.Repeat([]byte{0x91}, 1<<20)}, // a million arrays in one another
		{add, huge},                              // 2^32 − 1 elements in no bytes
		{add, append([]byte{0xdb}, binary.BigEndian.AppendUint32(nil, 1<<32-1)...)},
		{{enginecore.FrameAbort}, {0xc0, 0xc0}}, {{enginecore.FrameAbort}, huge}, {{enginecore.FrameAbort}, {0x91, 1}},
		{{enginecore.FrameUtility}, {0x93, 1, 2}}, {{enginecore.FrameUtility}, {}},
	}
	for _, m := range messages {
		if err := r.input.Send(identity, m...); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.input.Send(identity, add, good); err != nil {
		t.Fatal(err)
	}
	if got := r.next(); string(got.Requests[0].ID) != "good" || got.Requests[0].Finish != enginecore.FinishLength {
		t.Errorf("first output %q with finish %v, want good with length", got.Requests[0].ID, got.Requests[0].Finish)
	}
	if e := p.engines(t)[0]; e.Dropped != uint64(len(messages)) || e.Stats != (stats{Received: 1, Completed: 1}) || e.PID != pid {
		t.Errorf("%+v, want the same process, %d messages dropped, one request completed", e, len(messages))
	}
	if after, _ := resident(t, pid); after > before+32<<20 {
		t.Errorf("resident memory rose by %d MB, want at most 32", (after-before)>>20)
	}
}

func encoded(id string) []byte {
	sampling := enginecore.DefaultSampling()
	sampling.MaxTokens, sampling.IgnoreEOS = 1, true
	return enginecore.AppendRequest(nil, enginecore.Version{}, &enginecore.Request{ID: id, PromptTokens: []uint32{1, 2}, Sampling: &sampling})
}

// F49: bytes that break the transport itself cost the connection, which is made anew.
func TestF49_BrokenTransport(t *testing.T) {
	for name, garbage := range map[string]string{
		"4 GB claimed":             "\x02\x00\x00\x00\x01\x00\x00\x00\x00",
		"2^64 - 1 claimed":         "\x02\xff\xff\xff\xff\xff\xff\xff\xff",
		"reserved flags":           "\xf8\x01x",
		"a command in a message":   "\x01\x01x\x05\x01x",
		"a message without an end": strings.Repeat("\x01\x00", 1<<20),
		"noise":                    "GET / HTTP/1.1\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRude(t)
			wire := tap(t, strings.TrimPrefix(r.input.Address(), "tcp://"))
			p := launch{}.start(t, playArgs(r.handshake.Address(), 1)...)
			p.awaitControl(t)
			identity := r.join("tcp://" + wire.address)
			p.awaitState(t, patience, 0, "ready")
			pid := p.engines(t)[0].PID
			before, _ := resident(t, pid)
			wire.inject(t, garbage)
			if _, _, err := r.input.Recv(); err != nil { // it registers again
				t.Fatal(err)
			}
			proctest.Eventually(t, patience, func() error { return r.input.Send(identity, []byte{enginecore.FrameAdd}, encoded("good")) })
			if got := r.next(); string(got.Requests[0].ID) != "good" {
				t.Errorf("first output %q, want good", got.Requests[0].ID)
			}
			if after, _ := resident(t, pid); after > before+32<<20 {
				t.Errorf("resident memory rose by %d MB, want at most 32", (after-before)>>20)
			}
		})
	}
}

// wiretap passes connections on, and can put bytes of its own into the one that was made last.
type wiretap struct {
	address string
	mu      sync.Mutex
	last    net.Conn // towards whoever dialled
}

func tap(t *testing.T, to string) *wiretap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wiretap{address: l.Addr().String()}
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close() // nobody is there for it
				continue
			}
			w.mu.Lock()
			w.last = near
			w.mu.Unlock()
			for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
				passing.Go(func() {
					_, _ = io.Copy(way[0], way[1])                  // up to its end, however that comes
					_ = errors.Join(way[0].Close(), way[1].Close()) // both ways end together
				})
			}
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		if w.last != nil {
			_ = w.last.Close() // and with it all else
		}
		passing.Wait()
	})
	return w
}

func (w *wiretap) inject(t *testing.T, garbage string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := io.WriteString(w.last, garbage); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
}
