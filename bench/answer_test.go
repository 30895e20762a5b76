package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

const answerHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\ntransfer-Encoding: Chunked\r\n\r\n"

// bodyOf reads one answer.
func bodyOf(a *answer) (string, error) {
	if err := a.head(); err != nil {
		return "", err
	}
	var body bytes.Buffer
	for {
		piece, err := a.piece()
		body.Write(piece)
		if err == io.EOF {
			return body.String(), nil
		}
		if err != nil {
			return body.String(), err
		}
	}
}

// TestAnswer reads two answers of a connection, however the network cuts them.
func TestAnswer(t *testing.T) {
	one := answerHead + "5\r\nhello\r\n1;x=y\r\n \r\n0A\r\nbig\nworld!\r\n0\r\n\r\n"
	for name, source := range map[string]io.Reader{
		"whole":        strings.NewReader(one + one),
		"byte by byte": iotest.OneByteReader(strings.NewReader(one + one)),
	} {
		t.Run(name, func(t *testing.T) {
			a := newAnswer(source)
			for range 2 {
				if body, err := bodyOf(a); body != "hello big\nworld!" || err != nil {
					t.Errorf("body = %q, %v, want %q", body, err, "hello big\nworld!")
				}
			}
			if _, err := bodyOf(a); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("after the last answer the error is %v, want %v", err, io.ErrUnexpectedEOF)
			}
		})
	}
}

func TestAnswer_Refuses(t *testing.T) {
	cases := []struct{ name, bytes, want string }{
		{"status", "HTTP/1.1 503 Gone\r\n\r\nwhy not", `"HTTP/1.1 503 Gone": "why not"`},
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "the body is not chunked"},
		{"line", "HTTP/1.1 200 OK\r\n" + strings.Repeat("x", answerBuffer), "header: a line of more than 16384 bytes"},
		{"size", answerHead + "x\r\n", "size of a chunk"},
		{"size of 2 GiB", answerHead + "80000000\r\n", "size of a chunk"},
		{"end of a chunk", answerHead + "1\r\nab\r\n", `"b" behind a chunk`},
		{"trailer", answerHead + "0\r\nA: b\r\n\r\n", `"A: b" behind the last chunk`},
		{"cut", answerHead + "5\r\nhel", "unexpected EOF"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if body, err := bodyOf(newAnswer(strings.NewReader(c.bytes))); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("body = %q, %v, want an error that says %q", body, err, c.want)
			}
		})
	}
}

// FuzzAnswer: whatever comes, the answer is the same however it is cut.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(answerHead + "5\r\nhello\r\n0\r\n\r\n"))
	f.Add([]byte(answerHead + "1;a\nb\n0\n\n"))
	f.Add([]byte("HTTP/1.1 404 No\r\n\r\nbody"))
	f.Fuzz(func(t *testing.T, b []byte) {
		whole, err1 := bodyOf(newAnswer(bytes.NewReader(b)))
		cut, err2 := bodyOf(newAnswer(iotest.OneByteReader(bytes.NewReader(b))))
		if whole != cut || (err1 == nil) != (err2 == nil) {
			t.Errorf("whole %q, %v; byte by byte %q, %v", whole, err1, cut, err2)
		}
	})
}
