package zmtp

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

const (
	readBuffer = 64 << 10 // size of the buffer while messages fit it
	keepBuffer = 1 << 20  // a larger buffer is given up with the message that needed it
)

// reader takes frames off a byte stream and puts messages together. A message
// is kept where it was read, so one that fits the buffer is never copied.
//
//	buf:  | done | message being read: parsed | unparsed | free |
//	      0      start                        start+pos  end    len(buf)
//
// The buffer doubles only when it is full of bytes that really arrived.
type reader struct {
	src        io.Reader
	maxMessage uint64
	maxFrames  int

	// command is called with the body of each command, which it may modify. A
	// message that it returns is handed out as one frame and aliases the body.
	command func(body []byte) (message []byte, err error)

	buf        []byte
	start, end int
	pos        int // relative to start, as are spans: the buffer moves
	spans      []span
	holes      int // bytes of commands between spans
	frames     [][]byte
	bytes      atomic.Uint64 // read from src
	messages   atomic.Uint64
}

// span is where the body of a frame lies.
type span struct{ from, to int }

func newReader(src io.Reader, maxMessage int64, maxFrames int) *reader {
	return &reader{src: src, maxMessage: uint64(maxMessage), maxFrames: maxFrames, buf: make([]byte, readBuffer)}
}

// message returns the next message. Its frames are valid until the next call.
func (r *reader) message() ([][]byte, error) {
	r.release()
	var size uint64 // of the message so far
	for {
		h, err := r.header(size)
		if err != nil {
			return nil, err
		}
		from := r.pos
		if err := r.fill(from + int(h.size)); err != nil {
			return nil, err
		}
		r.pos += int(h.size)
		if h.command() {
			message, err := r.runCommand(from)
			if message == nil && err == nil {
				continue
			}
			return message, err
		}
		size += h.size
		r.spans = append(r.spans, span{from, r.pos})
		if !h.more() {
			return r.deliver(), nil
		}
	}
}

// header reads the next header and holds it against the limits. size is what
// the message has already.
func (r *reader) header(size uint64) (header, error) {
	if err := r.fill(r.pos + 1); err != nil {
		return header{}, err
	}
	n := headerSize(r.at(r.pos))
	if err := r.fill(r.pos + n); err != nil {
		return header{}, err
	}
	h, err := parseHeader(r.buf[r.start+r.pos : r.start+r.pos+n])
	if err != nil {
		return h, err
	}
	r.pos += n
	return h, r.checkLimits(h, size)
}

func (r *reader) checkLimits(h header, size uint64) error {
	if h.command() {
		if h.size > maxCommand {
			return fmt.Errorf("%w: command of %d bytes, want at most %d", ErrProtocol, h.size, maxCommand)
		}
		return nil
	}
	if h.size > r.maxMessage-size {
		return fmt.Errorf("%w: message of more than %d bytes (a frame of %d after %d), want at most %d", ErrProtocol, r.maxMessage, h.size, size, r.maxMessage)
	}
	if len(r.spans) >= r.maxFrames {
		return fmt.Errorf("%w: message of more than %d frames", ErrProtocol, r.maxFrames)
	}
	return nil
}

// runCommand handles the command whose body lies between from and pos. Between
// two frames of a message it stays in the buffer, a hole that no span covers.
func (r *reader) runCommand(from int) ([][]byte, error) {
	message, err := r.command(r.buf[r.start+from : r.start+r.pos])
	switch {
	case err != nil:
		return nil, err
	case len(r.spans) > 0:
		return nil, r.checkHole(r.pos-from, message != nil)
	case message == nil:
		r.release()
		return nil, nil
	}
	r.messages.Add(1)
	r.frames = append(r.frames[:0], message)
	return r.frames, nil
}

// checkHole bounds what commands inside an unfinished message make us hold.
func (r *reader) checkHole(size int, subscription bool) error {
	if subscription {
		return fmt.Errorf("%w: subscription between two frames of a message", ErrProtocol)
	}
	r.holes += size + maxHeaderSize
	if r.holes > maxCommand {
		return fmt.Errorf("%w: commands of more than %d bytes inside a message", ErrProtocol, maxCommand)
	}
	return nil
}

func (r *reader) deliver() [][]byte {
	r.messages.Add(1)
	r.frames = r.frames[:0]
	for _, s := range r.spans {
		r.frames = append(r.frames, r.buf[r.start+s.from:r.start+s.to:r.start+s.to])
	}
	return r.frames
}

// release gives up the bytes parsed so far.
func (r *reader) release() {
	r.start += r.pos
	r.pos = 0
	r.spans = r.spans[:0]
	r.holes = 0
	if r.start == r.end {
		r.start, r.end = 0, 0
	}
	if len(r.buf) > keepBuffer && r.end-r.start <= readBuffer {
		r.move(make([]byte, readBuffer))
	}
}

// at is the byte at offset i of the message being read.
func (r *reader) at(i int) byte { return r.buf[r.start+i] }

// fill reads until need bytes of the message being read are in the buffer.
func (r *reader) fill(need int) error {
	for r.end-r.start < need {
		r.makeRoom(need)
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		r.bytes.Add(uint64(n))
		if err != nil && r.end-r.start < need {
			return r.cut(err)
		}
	}
	return nil
}

// cut tells an end of the stream inside a message from one between messages.
func (r *reader) cut(err error) error {
	if errors.Is(err, io.EOF) && r.end > r.start {
		return io.ErrUnexpectedEOF
	}
	return err
}

// makeRoom sees to it that the next read has somewhere to go. It moves the
// message to the front where that helps, and doubles the buffer, at most to
// need, once the message fills it.
func (r *reader) makeRoom(need int) {
	free := len(r.buf) - r.end
	switch {
	case r.start+need <= len(r.buf) && (r.start == 0 || free >= readBuffer/2):
	case r.start > 0:
		r.move(r.buf)
	case free == 0:
		r.move(make([]byte, min(need, 2*len(r.buf))))
	}
}

// move puts what has been read and not released at the start of to.
func (r *reader) move(to []byte) {
	r.end = copy(to, r.buf[r.start:r.end])
	r.start = 0
	r.buf = to
}
