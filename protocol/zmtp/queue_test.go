package zmtp

import (
	"bytes"
	"errors"
	"testing"
)

// drain takes everything, as the writer does, and returns its bytes.
func drain(q *queue) []byte {
	chunks, _ := q.take(nil)
	b := bytes.Join(chunks, nil)
	q.wrote(int64(len(b)))
	q.recycle(chunks)
	return b
}

func pushAll(t *testing.T, q *queue, frames ...string) {
	t.Helper()
	for _, f := range frames {
		if err := q.push([][]byte{[]byte(f)}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestQueue_Bytes(t *testing.T) {
	q := newQueue(&Options{})
	pushAll(t, q, "a", "bc")
	want := append(encode("a"), encode("bc")...)
	if n := q.unsent(); n != int64(len(want)) {
		t.Errorf("unsent = %d, want %d", n, len(want))
	}
	if got := drain(q); !bytes.Equal(got, want) {
		t.Errorf("taken = %q, want %q", got, want)
	}
	if n := q.unsent(); n != 0 {
		t.Errorf("unsent = %d after all was written, want 0", n)
	}
}

func TestQueue_NewestPongFirst(t *testing.T) {
	q := newQueue(&Options{})
	pushAll(t, q, "message")
	for _, context := range []string{"old", "newer", "newest"} {
		q.setPong([]byte(context))
	}
	want := append(appendCommand(nil, commandPong, []byte("newest")), encode("message")...)
	if n := q.unsent(); n != int64(len(want)) {
		t.Errorf("unsent = %d, want %d", n, len(want))
	}
	if got := drain(q); !bytes.Equal(got, want) {
		t.Errorf("taken = %q, want %q", got, want)
	}
	pushAll(t, q, "next")
	if got, want := drain(q), encode("next"); !bytes.Equal(got, want) {
		t.Errorf("taken = %q, want %q", got, want)
	}
}

func TestQueue_Marks(t *testing.T) {
	q := newQueue(&Options{HighWater: 100, LowWater: 50})
	pushAll(t, q, string(make([]byte, 97))) // 99 bytes
	if q.wrote(99) {
		t.Error("low mark told though the high one was never reached")
	}
	pushAll(t, q, string(make([]byte, 98))) // 100 bytes
	if q.wrote(50) {
		t.Error("low mark told at 50 bytes, want only below")
	}
	if !q.wrote(1) {
		t.Error("low mark not told at 49 bytes")
	}
	if q.wrote(49) {
		t.Error("low mark told twice for one rise")
	}
	pushAll(t, q, string(make([]byte, 198)))
	if !q.wrote(200) {
		t.Error("low mark not told for the second rise")
	}
}

func TestQueue_BurstMemoryGoesBack(t *testing.T) {
	q := newQueue(&Options{})
	body := string(make([]byte, 1000))
	for range 40 << 20 / len(body) {
		pushAll(t, q, body)
	}
	pushAll(t, q, string(make([]byte, 20<<20)))
	drain(q)
	kept := 0
	for _, c := range q.spare {
		kept += cap(c)
	}
	if kept > maxSpare*chunkSize || len(q.chunks) != 0 {
		t.Errorf("after a burst of 60 MiB %d bytes are kept, want at most %d", kept, maxSpare*chunkSize)
	}
}

func TestQueue_LargeBodyHasItsOwnChunk(t *testing.T) {
	q := newQueue(&Options{})
	pushAll(t, q, "small", string(make([]byte, 5*chunkSize)))
	chunks, _ := q.take(nil)
	total := 0
	for _, c := range chunks {
		total += cap(c)
	}
	if total > 6*chunkSize {
		t.Errorf("%d bytes reserved for a body of %d, want at most one chunk more", total, 5*chunkSize)
	}
}

func TestQueue_Seal(t *testing.T) {
	q := newQueue(&Options{})
	pushAll(t, q, "last")
	reason := errors.New("reason")
	q.seal(reason)
	if err := q.push([][]byte{{1}}); !errors.Is(err, reason) {
		t.Errorf("push = %v, want %v", err, reason)
	}
	if err := q.pushCommand(commandSubscribe, nil); !errors.Is(err, reason) {
		t.Errorf("pushCommand = %v, want %v", err, reason)
	}
	if got, want := drain(q), encode("last"); !bytes.Equal(got, want) {
		t.Errorf("taken = %q, want %q", got, want)
	}
	if _, more := q.take(nil); more {
		t.Error("take promises more of a sealed, empty queue")
	}
}

func TestQueue_Kill(t *testing.T) {
	q := newQueue(&Options{})
	pushAll(t, q, "lost")
	q.kill(errors.New("reason"))
	if _, more := q.take(nil); more {
		t.Error("take returns something of a killed queue")
	}
	if got, want := q.unsent(), int64(len(encode("lost"))); got != want {
		t.Errorf("unsent = %d, want %d", got, want)
	}
}
