package ipc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestReadFrame_Order(t *testing.T) {
	want := []Frame{
		{Kind: KindHello, Body: []byte(`{"version":1}`)},
		{Kind: KindAnswer, Call: 1<<64 - 1, Body: []byte{}},
		{Kind: KindState, Call: 7, Body: bytes.Repeat([]byte("x"), 5_000)},
		{Kind: 255, Body: []byte("\x00\xff")},
	}
	var stream []byte
	for _, f := range want {
		stream = AppendFrame(stream, f)
	}
	for name, r := range map[string]io.Reader{
		"whole":     bytes.NewReader(stream),
		"one byte":  iotest.OneByteReader(bytes.NewReader(stream)),
		"halves":    iotest.HalfReader(bytes.NewReader(stream)),
		"late EOF":  iotest.DataErrReader(bytes.NewReader(stream)),
		"over pipe": choppedPipe(t, stream),
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, readAll(t, r)); diff != "" {
				t.Errorf("frames (-want +got):\n%s", diff)
			}
		})
	}
}

// choppedPipe is a connection whose other end writes stream byte by byte and then closes.
func choppedPipe(t *testing.T, stream []byte) io.Reader {
	t.Helper()
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer theirs.Close()
		for i := range stream {
			if _, err := theirs.Write(stream[i : i+1]); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { ours.Close(); <-done })
	return ours
}

// readAll reads frames to the end of the stream, which must fall between two of them.
func readAll(t *testing.T, r io.Reader) []Frame {
	t.Helper()
	var frames []Frame
	var buf []byte
	for {
		var f Frame
		var err error
		f, buf, err = ReadFrame(r, buf)
		if err == io.EOF {
			return frames
		}
		if err != nil {
			t.Fatalf("ReadFrame: %v", err)
		}
		f.Body = bytes.Clone(f.Body)
		frames = append(frames, f)
	}
}

func TestReadFrame_Length(t *testing.T) {
	for _, c := range []struct {
		name   string
		length uint32
		ok     bool
	}{
		{"zero", 0, false},
		{"less than a header", headerSize - 1, false},
		{"empty body", headerSize, true},
		{"largest", MaxFrame, true},
		{"one too many", MaxFrame + 1, false},
		{"sign bit", 1 << 31, false},
		{"4 GB", 1<<32 - 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := io.MultiReader(bytes.NewReader(binary.LittleEndian.AppendUint32(nil, c.length)), zeros{})
			f, buf, err := ReadFrame(r, nil)
			if c.ok {
				if err != nil || len(f.Body) != int(c.length)-headerSize {
					t.Errorf("ReadFrame = body of %d bytes, %v, want %d bytes", len(f.Body), err, int(c.length)-headerSize)
				}
				return
			}
			if !errors.Is(err, ErrFrameSize) {
				t.Errorf("ReadFrame: error %v, want %v", err, ErrFrameSize)
			}
			if cap(buf) != 0 {
				t.Errorf("%d bytes allocated for a frame that was refused", cap(buf))
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestReadFrame_Cut(t *testing.T) {
	whole := AppendFrame(nil, Frame{Kind: KindCall, Call: 3, Body: []byte(`{"op":"ping"}`)})
	for n := range len(whole) {
		_, _, err := ReadFrame(bytes.NewReader(whole[:n]), nil)
		want := io.ErrUnexpectedEOF
		if n == 0 {
			want = io.EOF
		}
		if !errors.Is(err, want) || (n > 0 && errors.Is(err, io.EOF)) {
			t.Errorf("after %d of %d bytes: error %v, want %v", n, len(whole), err, want)
		}
	}
}

func TestReadFrame_BrokenReader(t *testing.T) {
	broken := errors.New("cable pulled")
	whole := AppendFrame(nil, Frame{Kind: KindCall, Body: []byte("{}")})
	for _, n := range []int{0, 2, 4, 10} {
		r := io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(broken))
		if _, _, err := ReadFrame(r, nil); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: error %v, want %v", n, err, broken)
		}
	}
}

func TestReadFrame_ReusesBuffer(t *testing.T) {
	stream := AppendFrame(nil, Frame{Kind: KindCall, Body: []byte(strings.Repeat("a", 100))})
	stream = AppendFrame(stream, Frame{Kind: KindCall, Body: []byte("b")})
	r := bytes.NewReader(stream)
	_, first, err := ReadFrame(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, second, err := ReadFrame(r, first)
	if err != nil {
		t.Fatal(err)
	}
	if &first[0] != &second[0] {
		t.Error("a smaller frame was read into a new buffer, want the one given")
	}
}
