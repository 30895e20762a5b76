package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// httpClients is how many clients of the HTTP API there are.
const httpClients = 24

// httpLoad is clients of an OpenAI API. Each asks for one answer after the other: as a stream or as a whole, and now and then it is slow to
// read or hangs up in the middle.
type httpLoad struct {
	address string
	client  *http.Client
	paused  atomic.Bool
	open    atomic.Int64

	mu    sync.Mutex
	books books
	fault error // the first thing that must not be
}

// manner is how a client takes an answer.
type manner int

const (
	whole manner = iota
	streamed
	slow   // a stream, read a little at a time for a while
	rudely // a stream that is hung up on, with RST
)

func newHTTPLoad(address string) *httpLoad {
	return &httpLoad{address: address, client: &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: httpClients}}}
}

// run is one client, until ctx ends.
func (l *httpLoad) run(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		if l.paused.Load() {
			wait(ctx, 20*time.Millisecond)
			continue
		}
		m := whole
		switch random.IntN(20) {
		case 0:
			m = slow
		case 1:
			m = rudely
		case 2, 3, 4, 5, 6, 7:
		default:
			m = streamed
		}
		if !l.ask(ctx, m, 1+random.IntN(200)) {
			wait(ctx, 50*time.Millisecond) // nobody may be there
		}
	}
}

// ask asks for one answer, and enters how that ended. It reports whether the whole answer came.
func (l *httpLoad) ask(ctx context.Context, m manner, tokens int) bool {
	l.open.Add(1)
	defer l.open.Add(-1)
	var err error
	if m == rudely || m == slow {
		err = l.askByHand(ctx, m, tokens)
	} else {
		err = l.askClient(ctx, m, tokens)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if refused := (*net.OpError)(nil); errors.As(err, &refused) && refused.Op == "dial" {
		return false // nothing was sent
	}
	l.books.sent++
	if err != nil {
		l.books.unseen++
		var wrong *wrongAnswer
		if errors.As(err, &wrong) && l.fault == nil {
			l.fault = err
		}
		return false
	}
	l.books.completed++
	l.books.tokens += uint64(tokens)
	return true
}

// wrongAnswer is one that came to its end, and is not what was asked for.
type wrongAnswer struct{ text string }

func (e *wrongAnswer) Error() string { return e.text }

func question(m manner, tokens int) string {
	return fmt.Sprintf(`{"model":"`+served+`","messages":[{"role":"user","content":"How long will it last?"}],"max_tokens":%d,"ignore_eos":true,"stream":%t%s}`,
		tokens, m != whole, map[bool]string{true: `,"stream_options":{"include_usage":true}`}[m != whole])
}

func (l *httpLoad) askClient(ctx context.Context, m manner, tokens int) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.address+"/v1/chat/completions", strings.NewReader(question(m, tokens)))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	a, err := l.client.Do(q)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	return judge(a, m, tokens)
}

// judge reads an answer to its end. An error status, an error event and an end in the middle are ends that tell nothing of the engine's
// books; an answer that ends well has as many tokens as were asked for.
func judge(a *http.Response, m manner, tokens int) error {
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return err
	}
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %.200s", a.StatusCode, text)
	}
	if m == whole {
		return checkUsage(string(text), tokens)
	}
	events := strings.Split(strings.TrimSpace(string(text)), "\n\n")
	n := len(events)
	if n < 2 || events[n-1] != "data: [DONE]" || strings.Contains(string(text), `data: {"error"`) {
		return fmt.Errorf("stream of %d events ends with %.200s", n, events[n-1])
	}
	return checkUsage(strings.TrimPrefix(events[n-2], "data: "), tokens)
}

func checkUsage(text string, tokens int) error {
	var said struct {
		Usage struct {
			Tokens int `json:"completion_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(text), &said); err != nil || said.Usage.Tokens != tokens {
		return &wrongAnswer{fmt.Sprintf("an answer of %d tokens, want %d: %.300s, %v", said.Usage.Tokens, tokens, text, err)}
	}
	return nil
}

var errHungUp = errors.New("hung up")

// askByHand does to a connection what no decent client would.
func (l *httpLoad) askByHand(ctx context.Context, m manner, tokens int) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", l.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute)) // of a connection that is open
	body := question(m, tokens)
	if _, err := fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		l.address, len(body), body); err != nil {
		return err
	}
	if m == rudely {
		_, _ = conn.Read(make([]byte, 300)) // so that it has begun
		_ = conn.(*net.TCPConn).SetLinger(0)
		return errHungUp
	}
	a, err := http.ReadResponse(bufio.NewReaderSize(&trickle{conn, 200}, 64), nil)
	if err != nil {
		return err
	}
	return judge(a, m, tokens)
}

// trickle gives its first bytes out slowly.
type trickle struct {
	from  io.Reader
	reads int // that are slow
}

func (t *trickle) Read(b []byte) (int, error) {
	if t.reads > 0 {
		t.reads--
		time.Sleep(10 * time.Millisecond)
		b = b[:min(len(b), 16)]
	}
	return t.from.Read(b)
}

func (l *httpLoad) idle() bool { return l.open.Load() == 0 }

func (l *httpLoad) total() books { l.mu.Lock(); defer l.mu.Unlock(); return l.books }

func (l *httpLoad) faulty() error { l.mu.Lock(); defer l.mu.Unlock(); return l.fault }
