package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// visitor is one client: it asks for a stream, reads it to its end, and asks again over the same connection.
type visitor struct {
	load   *httpLoad
	conn   net.Conn
	answer *answer
	events events
	timed  bool
	sent   time.Time
}

// chatPrompt is a handful of words, like the prompt of the other scenarios: about chatPromptTokens in any vocabulary.
const (
	chatPrompt       = "Tell me of an engine that answers many people at once. "
	chatPromptTokens = 12
)

// chatRequest is a whole HTTP request for a streamed chat completion of so many tokens, with a prompt of about as many as said.
func chatRequest(host, model string, prompted, tokens int) ([]byte, error) {
	name, err := json.Marshal(model)
	if err != nil {
		return nil, err
	}
	body := fmt.Sprintf(`{"model":%s,"messages":[{"role":"user","content":"%s"}],"max_tokens":%d,"ignore_eos":true,`+
		`"stream":true,"stream_options":{"include_usage":true}}`, name, strings.Repeat(chatPrompt, max(1, prompted/chatPromptTokens)), tokens)
	return fmt.Appendf(nil, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		host, len(body), body), nil
}

// visit connects and asks until the load stops. It closes the connection.
func (l *httpLoad) visit(ctx context.Context) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", l.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // ends a read
	v := &visitor{load: l, conn: conn, answer: newAnswer(conn)}
	for !l.stopping.Load() {
		if err := v.ask(); err != nil {
			return fmt.Errorf("stream: %w", err)
		}
	}
	return nil
}

// ask asks for one stream and checks it.
func (v *visitor) ask() error {
	v.events.reset()
	v.timed = v.load.measuring.Load()
	v.sent = time.Now()
	if _, err := v.conn.Write(v.load.request); err != nil {
		return err
	}
	if err := v.answer.head(); err != nil {
		return err
	}
	if err := v.body(); err != nil {
		return err
	}
	if err := v.events.check(v.load.shape.tokens); err != nil {
		return err
	}
	if v.load.plain && v.events.letters != v.events.tokens {
		return fmt.Errorf("a stream of %d tokens with %d letters, want one of each", v.events.tokens, v.events.letters)
	}
	v.load.ended(&v.events)
	return nil
}

func (v *visitor) body() error {
	for {
		piece, err := v.answer.piece()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		seen := v.seen()
		n, err := v.events.feed(piece)
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		v.load.events.Add(uint64(n))
		if v.timed {
			v.load.late(seen, v.seen()-seen, time.Since(v.sent))
		}
	}
}

// seen is how many tokens came so far, or events where tokens can't be told.
func (v *visitor) seen() int {
	if v.load.plain {
		return v.events.letters
	}
	return v.events.content
}
