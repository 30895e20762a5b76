package logs

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/goccy/go-json"
)

// textWriter rewrites JSON lines for people. It is used by one goroutine only.
type textWriter struct {
	w     io.Writer
	color bool
	buf   bytes.Buffer
}

// Write takes one whole JSON line. One that is no JSON object is passed on as it is.
func (t *textWriter) Write(line []byte) (int, error) {
	t.buf.Reset()
	if err := t.format(line); err != nil {
		return t.w.Write(line)
	}
	if _, err := t.w.Write(t.buf.Bytes()); err != nil {
		return 0, err
	}
	return len(line), nil
}

func (t *textWriter) format(line []byte) error {
	head, fields, err := split(line)
	if err != nil {
		return err
	}
	fmt.Fprintf(&t.buf, "%s %s %s: %s", head["time"], t.level(head["level"]), head["target"], head["message"])
	for _, f := range fields {
		fmt.Fprintf(&t.buf, " %s=%s", f.key, f.raw)
	}
	return t.buf.WriteByte('\n')
}

// level is the word in upper case, right-aligned to the longest.
func (t *textWriter) level(word string) string {
	text := fmt.Sprintf("%5s", strings.ToUpper(word))
	if !t.color {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colors[word], text)
}

// colors are the ANSI foreground colours of the levels.
var colors = map[string]int{"error": 31, "warn": 33, "info": 32, "debug": 34, "trace": 35}

type field struct {
	key string
	raw string // JSON without anything unprintable: a value cannot forge a line or move a terminal's cursor
}

// split takes a line apart: the four parts that every line has, and the other fields in their order.
func split(line []byte) (head map[string]string, fields []field, err error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	if _, err := dec.Token(); err != nil {
		return nil, nil, err
	}
	head = map[string]string{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, nil, err
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, nil, err
		}
		switch name := fmt.Sprint(key); name {
		case "time", "level", "target", "message":
			head[name] = plain(raw)
		default:
			fields = append(fields, field{printable(name), printable(string(raw))})
		}
	}
	return head, fields, nil
}

// plain is the string in raw without its quotes.
func plain(raw []byte) string {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return printable(string(raw))
	}
	return printable(s)
}

// printable is s, quoted where it holds anything else than printable characters and blanks.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.QuoteToASCII(s)
	}
	return s
}
