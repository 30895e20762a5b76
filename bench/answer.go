package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// answerBuffer holds what one read takes, and the longest line of a head, in bytes.
const answerBuffer = 16 << 10

// answer reads HTTP/1.1 responses with a chunked body from one connection, one after the other, and allocates only when it is
// made. It knows of HTTP what servers of streams send: no trailers, no chunk extensions that matter, no interim responses.
type answer struct {
	source   io.Reader
	buf      []byte
	from, to int  // what of buf was read and not yet taken
	left     int  // bytes of the chunk at hand that were not taken
	inside   bool // a chunk was begun whose closing line end was not taken
}

func newAnswer(source io.Reader) *answer {
	return &answer{source: source, buf: make([]byte, answerBuffer)}
}

// errLine is a line that has no end within answerBuffer.
var errLine = fmt.Errorf("a line of more than %d bytes", answerBuffer)

// head takes status line and headers, and returns the status. Any status but 200 comes with an error that tells the
// beginning of the body.
func (a *answer) head() error {
	line, err := a.line()
	if err != nil {
		return fmt.Errorf("status line: %w", err)
	}
	ok := bytes.HasPrefix(line, []byte("HTTP/1.1 200"))
	status := string(line)
	chunked := false
	for {
		if line, err = a.line(); err != nil {
			return fmt.Errorf("header: %w", err)
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		chunked = chunked || bytes.EqualFold(name, []byte("transfer-encoding")) && bytes.EqualFold(bytes.TrimSpace(value), []byte("chunked"))
	}
	if !ok {
		return fmt.Errorf("%q: %.300q", status, a.buf[a.from:a.to])
	}
	if !chunked {
		return errors.New("the body is not chunked")
	}
	a.left, a.inside = 0, false
	return nil
}

// piece takes what is there of the body, at least one byte; io.EOF at its end. It is valid until the next call.
func (a *answer) piece() ([]byte, error) {
	if a.left == 0 {
		if err := a.chunk(); err != nil {
			return nil, err
		}
	}
	if a.from == a.to {
		if err := a.read(); err != nil {
			return nil, err
		}
	}
	n := min(a.left, a.to-a.from)
	p := a.buf[a.from : a.from+n]
	a.from += n
	a.left -= n
	return p, nil
}

// chunk takes the line that begins the next chunk; io.EOF after the last one.
func (a *answer) chunk() error {
	if a.inside {
		if line, err := a.line(); err != nil || len(line) > 0 {
			return errors.Join(fmt.Errorf("%.20q behind a chunk, want the end of a line", line), err)
		}
	}
	line, err := a.line()
	if err != nil {
		return err
	}
	size, _, _ := bytes.Cut(line, []byte(";"))
	n, err := strconv.ParseUint(string(size), 16, 31)
	if err != nil {
		return fmt.Errorf("size of a chunk: %w", err)
	}
	if n > 0 {
		a.left, a.inside = int(n), true
		return nil
	}
	if line, err := a.line(); err != nil || len(line) > 0 {
		return errors.Join(fmt.Errorf("%.20q behind the last chunk, want an empty line", line), err)
	}
	return io.EOF
}

// line takes a line, and returns it without its end. It is valid until the next call.
func (a *answer) line() ([]byte, error) {
	for searched := a.from; ; {
		if i := bytes.IndexByte(a.buf[searched:a.to], '\n'); i >= 0 {
			line := a.buf[a.from : searched+i]
			a.from = searched + i + 1
			return bytes.TrimSuffix(line, []byte("\r")), nil
		}
		seen := a.to - a.from
		if seen == len(a.buf) {
			return nil, errLine
		}
		if err := a.read(); err != nil {
			return nil, err
		}
		searched = a.from + seen
	}
}

// read adds to what is there. The end of the connection is io.ErrUnexpectedEOF: a body ends before it.
func (a *answer) read() error {
	if a.from > 0 {
		a.to = copy(a.buf, a.buf[a.from:a.to])
		a.from = 0
	}
	n, err := a.source.Read(a.buf[a.to:])
	a.to += n
	switch {
	case n > 0:
		return nil
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	case err == nil:
		return io.ErrNoProgress
	}
	return err
}
