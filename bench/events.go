package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// events reads the server-sent events of one chat completion, and keeps of them what a load needs to know. The zero value
// is before the first one.
type events struct {
	cut     []byte // the beginning of a line whose end didn't come yet
	content int    // events that carried text
	letters int    // of the text, an escape counting as one
	tokens  int    // as the usage tells; -1 = not told
	done    bool   // the last event was the end marker
}

// maxEvent bounds a line, in bytes.
const maxEvent = 1 << 20

var (
	dataField  = []byte("data:")
	doneMarker = []byte("[DONE]")
	errorStart = []byte(`{"error"`)
	contentKey = []byte(`"content":"`)
	noChoices  = []byte(`"choices":[]`)
	tokensKey  = []byte(`"completion_tokens":`)
)

// reset goes back before the first event.
func (e *events) reset() { *e = events{cut: e.cut[:0], tokens: -1} }

// feed takes the next bytes of the body, and returns how many events with text ended in them.
func (e *events) feed(piece []byte) (content int, err error) {
	before := e.content
	for {
		line, rest, found := bytes.Cut(piece, []byte("\n"))
		if !found {
			e.cut = append(e.cut, piece...)
			if len(e.cut) > maxEvent {
				return 0, fmt.Errorf("an event of more than %d bytes", maxEvent)
			}
			return e.content - before, nil
		}
		if len(e.cut) > 0 {
			e.cut = append(e.cut, line...)
			line = e.cut
		}
		if err := e.line(bytes.TrimSuffix(line, []byte("\r"))); err != nil {
			return 0, err
		}
		e.cut = e.cut[:0]
		piece = rest
	}
}

// line takes a whole line. All but data is skipped.
func (e *events) line(line []byte) error {
	data, ok := bytes.CutPrefix(line, dataField)
	if !ok {
		return nil
	}
	data = bytes.TrimPrefix(data, []byte(" "))
	if e.done {
		return fmt.Errorf("%.100q behind the end marker", data)
	}
	if at := bytes.Index(data, contentKey); at >= 0 {
		if n := letters(data[at+len(contentKey):]); n > 0 {
			e.content++
			e.letters += n
			return nil
		}
	}
	switch {
	case bytes.Equal(data, doneMarker):
		e.done = true
	case bytes.HasPrefix(data, errorStart):
		return fmt.Errorf("the stream tells of an error: %.300s", data)
	case bytes.Contains(data, noChoices):
		return e.usage(data)
	}
	return nil
}

// letters counts the characters of a JSON string of ASCII, up to its closing quote.
func letters(s []byte) int {
	n := 0
	for i := 0; i < len(s) && s[i] != '"'; i++ {
		switch {
		case s[i] != '\\':
		case i+1 < len(s) && s[i+1] == 'u':
			i += len("u0000")
		default:
			i++
		}
		n++
	}
	return n
}

// usage takes the event that tells it.
func (e *events) usage(data []byte) error {
	_, value, found := bytes.Cut(data, tokensKey)
	if !found {
		return nil
	}
	digits := 0
	for digits < len(value) && value[digits] >= '0' && value[digits] <= '9' {
		digits++
	}
	n, err := strconv.ParseUint(string(value[:digits]), 10, 31)
	if err != nil {
		return fmt.Errorf("usage: completion_tokens: %w", err)
	}
	e.tokens = int(n)
	return nil
}

// check judges a body that has ended.
func (e *events) check(want int) error {
	switch {
	case !e.done:
		return errors.New("the stream ended without an end marker")
	case e.tokens != want:
		return fmt.Errorf("a stream whose usage is %d tokens, want %d", e.tokens, want)
	case e.content == 0:
		return errors.New("a stream without text")
	}
	return nil
}
