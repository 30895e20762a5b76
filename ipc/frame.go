// Package ipc is what a supervisor and its workers say to each other over an inherited Unix socket pair, and the page of
// memory that outlives a worker.
//
// It guarantees that no frame costs more memory than [MaxFrame], that a frame is written whole or the link is ended, and
// that both ends speak the same [Version]. It must never know what an engine, an HTTP route or a process is: it carries
// messages and does not act on them.
//
// Layout of a frame, numbers in little-endian order:
//
//	┌────────────┬────────┬──────────┬─────────────┐
//	│ length u32 │ kind u8│ call u64 │ JSON body … │
//	└────────────┴────────┴──────────┴─────────────┘
//
// length counts everything behind itself. call numbers a question and its answer; 0 asks for no answer.
package ipc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Version is the version of the protocol. A worker of another version refuses to start.
const Version = 1

// Magic opens the body of the first frame, so that a stray writer is told from a supervisor.
const Magic = "vllm-vcr"

// MaxFrame is the largest length a frame may claim, in bytes. It holds the largest change that the control API accepts,
// 2 MiB, where JSON escapes each of its bytes twice.
const MaxFrame = 8 << 20

const (
	lengthSize = 4
	headerSize = 1 + 8
)

var (
	// ErrFrameSize says that a frame has, or claims, a length that no frame may have. Where it was read, the link cannot
	// be used any more.
	ErrFrameSize = errors.New("frame length out of range")
	// ErrVersion says that the other end is none of ours, or one of another version: it will not get better.
	ErrVersion = errors.New("protocol mismatch")
)

// Kind says what a frame's body is.
type Kind uint8

// The kinds of frame. S is the supervisor, W a worker.
const (
	KindStart  Kind = iota + 1 // S→W, first: Start
	KindHello                  // W→S, first: Hello; the engine is built and answers calls from now on
	KindState                  // W→S: State, whenever it changes
	KindCall                   // S→W: Call
	KindAnswer                 // W→S: Answer, under the number of its call
)

// Frame is one message. Body is JSON.
type Frame struct {
	Kind Kind
	Call uint64
	Body []byte
}

// AppendFrame appends f as it goes over the socket.
func AppendFrame(b []byte, f Frame) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(headerSize+len(f.Body)))
	b = append(b, byte(f.Kind))
	b = binary.LittleEndian.AppendUint64(b, f.Call)
	return append(b, f.Body...)
}

// ReadFrame reads one frame into buf, growing it where needed. The frame's body and the returned buffer share memory
// and are valid until the buffer is used again. Its error is io.EOF only where the stream ended between two frames.
func ReadFrame(r io.Reader, buf []byte) (Frame, []byte, error) {
	var head [lengthSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Frame{}, buf, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n < headerSize || n > MaxFrame {
		return Frame{}, buf, fmt.Errorf("%w: %d, want %d to %d", ErrFrameSize, n, headerSize, MaxFrame)
	}
	if cap(buf) < int(n) {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err := io.ReadFull(r, buf); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, buf, fmt.Errorf("frame of %d bytes: %w", n, err)
	}
	return Frame{Kind: Kind(buf[0]), Call: binary.LittleEndian.Uint64(buf[1:headerSize]), Body: buf[headerSize:]}, buf, nil
}
