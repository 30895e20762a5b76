//go:build chaos

package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A prompt of so many tokens that engines with --token-source echo answer with, over and over: what must come is known to the last byte.
const (
	echoed       = "One two three four five six seven eight."
	echoedTokens = 9
)

// stream is an answer that comes in events.
type stream struct {
	done   chan struct{} // closed once what follows is set
	text   string
	failed string // what an error event or an error body said
	whole  bool   // [DONE] came
	status int
	err    error // the connection's
	begun  time.Time
	ended  time.Time
	events []time.Time // when each that carried text came
}

// begin asks for an answer of so many echoes from an engine, or from any where it is −1.
func (p *program) begin(engine, echoes int) *stream {
	s := &stream{done: make(chan struct{}), begun: time.Now()}
	go func() {
		defer close(s.done)
		s.err = s.run(p.api, engine, echoes)
		s.ended = time.Now()
	}()
	return s
}

func (s *stream) run(c *client, engine, echoes int) error {
	body := fmt.Sprintf(`{"prompt": %q, "max_tokens": %d, "stream": true, "ignore_eos": true}`, echoed, echoes*echoedTokens)
	var header []string
	if engine >= 0 {
		header = []string{"X-Data-Parallel-Rank", strconv.Itoa(engine)}
	}
	r, err := c.request(http.MethodPost, "/v1/completions", body, header...)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }() // read to its end or given up
	s.status = r.StatusCode
	var text strings.Builder
	scan := bufio.NewScanner(r.Body)
	for scan.Scan() {
		s.take(&text, strings.TrimPrefix(scan.Text(), "data: "))
	}
	s.text = text.String()
	return scan.Err()
}

// take reads one event, or a body that is an error.
func (s *stream) take(text *strings.Builder, data string) {
	if data == "[DONE]" {
		s.whole = true
		return
	}
	var event struct {
		Error   json.RawMessage
		Choices []struct{ Text string }
	}
	if data == "" || json.Unmarshal([]byte(data), &event) != nil {
		return
	}
	if event.Error != nil {
		s.failed = string(event.Error)
	}
	for _, c := range event.Choices {
		text.WriteString(c.Text)
		s.events = append(s.events, time.Now())
	}
}

// wait waits for the end of the answer.
func (s *stream) wait(t *testing.T) *stream {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(patience):
		t.Fatal("a stream has not ended")
	}
	return s
}

// exact returns nil if the answer is whole and right to the last byte.
func (s *stream) exact(echoes int) error {
	want := strings.Repeat(echoed, echoes)
	if s.status != http.StatusOK || s.err != nil || s.failed != "" || !s.whole || s.text != want {
		return fmt.Errorf("status %d, error %q, connection %v, [DONE] %v, %d bytes of text, want %d to the byte: %.100q",
			s.status, s.failed, s.err, s.whole, len(s.text), len(want), s.text)
	}
	return nil
}

// severed returns nil if the client was told of an error, and the answer has no mark of a good end.
func (s *stream) severed() error {
	if s.failed == "" || s.whole || s.err == nil {
		return fmt.Errorf("status %d, error %q, [DONE] %v, connection %v, want an error, no [DONE] and a cut", s.status, s.failed, s.whole, s.err)
	}
	return nil
}

// answered returns nil if any engine answers a short request whole.
func (p *program) answered() error {
	s := p.begin(-1, 2)
	<-s.done
	return s.exact(2)
}

// answeredBy is answered for each of these engines.
func (p *program) answeredBy(engines ...int) error {
	var errs []error
	for _, e := range engines {
		s := p.begin(e, 2)
		<-s.done
		if err := s.exact(2); err != nil {
			errs = append(errs, fmt.Errorf("engine %d: %w", e, err))
		}
	}
	return errors.Join(errs...)
}
