package frontend

import (
	"bufio"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/protocol/enginecore"
)

// request is a call of /v1/completions as it goes over the wire.
func request(body string) string {
	return fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// TestGone has clients leave in every way and at every stage, with and without TLS: the request must be given up within a second.
func TestGone(t *testing.T) {
	ways := map[string]func(wire) error{
		"close":      func(w wire) error { return w.Close() },
		"FIN":        func(w wire) error { return w.tcp.Close() },
		"half-close": func(w wire) error { return w.tcp.CloseWrite() },
		"RST": func(w wire) error {
			if err := w.tcp.SetLinger(0); err != nil {
				return err
			}
			return w.tcp.Close()
		},
		"FIN behind another request": func(w wire) error {
			if _, err := io.WriteString(w, request(`{"prompt":"y"}`)); err != nil {
				return err
			}
			return w.Close()
		},
	}
	for name, start := range map[string]func(*testing.T, Engines) *api{
		"plain": startPlain, "TLS": startSecure,
	} {
		for way, leave := range ways {
			for _, stage := range []string{"whole", "prefill", "stream"} {
				t.Run(name+" "+way+" "+stage, func(t *testing.T) { leavesAt(t, start, stage, leave) })
			}
		}
	}
}

// TestGone_AfterTheReadTimeout has a client leave that has waited for longer than its request had to arrive.
func TestGone_AfterTheReadTimeout(t *testing.T) {
	t.Run("plain", func(t *testing.T) { leavesLate(t, listen(t), nil) })
	t.Run("TLS", func(t *testing.T) {
		ln, roots := listenSecure(t)
		leavesLate(t, ln, roots)
	})
}

func leavesLate(t *testing.T, ln net.Listener, roots *x509.CertPool) {
	streams := newStreams()
	submittedC := make(chan time.Time, 1)
	s, err := New(&fakeEngines{SubmitFunc: func([]dispatch.Request) (Streams, error) {
		submittedC <- time.Now()
		return streams, nil
	}}, vocabulary(), Options{Models: []string{"tiny"}})
	if err != nil {
		t.Fatal(err)
	}
	s.http.ReadTimeout = time.Second
	conn := serveAt(t, s, ln, roots).connect(request(`{"prompt":"x"}`))
	<-time.After(time.Until((<-submittedC).Add(s.http.ReadTimeout)))
	if streams.isCanceled() {
		t.Error("given up while its client waited")
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-streams.cancelC:
	case <-time.After(20 * time.Second):
		t.Error("not given up when its client left")
	}
}

func leavesAt(t *testing.T, start func(*testing.T, Engines) *api, stage string, leave func(wire) error) {
	streams := newStreams()
	if stage == "stream" {
		streams = newStreams(says("one", enginecore.FinishNone)...)
	}
	submittedC := make(chan struct{}, 8) // more than there are requests
	a := start(t, &fakeEngines{SubmitFunc: func([]dispatch.Request) (Streams, error) {
		submittedC <- struct{}{}
		return streams, nil
	}})
	conn := a.connect(request(fmt.Sprintf(`{"prompt":"x","max_tokens":500,"stream":%v}`, stage != "whole")))
	<-submittedC
	if stage == "stream" {
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatalf("status line %q, %v", line, err)
		}
	}
	began := time.Now()
	if err := leave(conn); err != nil {
		t.Fatal(err)
	}
	<-streams.cancelC
	if took := time.Since(began); took > time.Second {
		t.Errorf("given up after %v, want within a second", took)
	}
}

// TestGone_KeepAlive has a client send its next request early and stay: both are answered.
func TestGone_KeepAlive(t *testing.T) {
	t.Run("plain", func(t *testing.T) { keepsAlive(t, startPlain) })
	t.Run("TLS", func(t *testing.T) { keepsAlive(t, startSecure) })
}

func keepsAlive(t *testing.T, start func(*testing.T, Engines) *api) {
	gate := make(chan struct{})
	steps := says("one two", enginecore.FinishLength)
	steps[1].gate = gate
	submittedC := make(chan *fakeStreams, 2)
	a := start(t, &fakeEngines{SubmitFunc: func([]dispatch.Request) (Streams, error) {
		s := newStreams(append([]step(nil), steps...)...)
		submittedC <- s
		return s, nil
	}})
	conn := a.connect(request(`{"prompt":"x","stream":true}`))
	r := bufio.NewReader(conn)
	for !strings.Contains(readLine(t, r), "one") {
	}
	if _, err := io.WriteString(conn, request(`{"prompt":"y"}`)); err != nil {
		t.Fatal(err)
	}
	close(gate)
	for !strings.Contains(readLine(t, r), "[DONE]") {
	}
	for !strings.Contains(readLine(t, r), "one two") {
	}
	for i := range 2 {
		if s := <-submittedC; s.isCanceled() {
			t.Errorf("request %d was given up", i)
		}
	}
}

func readLine(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil && line == "" {
		t.Fatal(err)
	}
	if err != nil { // the last answer's body has no end of line
		return line
	}
	if strings.HasPrefix(line, "Content-Length") {
		length := 0
		if _, err := fmt.Sscanf(line, "Content-Length: %d", &length); err != nil {
			t.Fatal(err)
		}
		for readLine(t, r) != "\r\n" {
		}
		body := make([]byte, length)
		if _, err := io.ReadFull(r, body); err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	return line
}

// TestGone_SlowReader has a client that reads nothing: its request is given up when it goes, though a write to it waits.
func TestGone_SlowReader(t *testing.T) {
	t.Run("plain", func(t *testing.T) { readsSlowly(t, startPlain) })
	t.Run("TLS", func(t *testing.T) { readsSlowly(t, startSecure) })
}

func readsSlowly(t *testing.T, start func(*testing.T, Engines) *api) {
	var steps []step
	many := make([]uint32, 10_000)
	for range 1000 {
		steps = append(steps, step{chunk: dispatch.Chunk{Tokens: many}})
	}
	streams := newStreams(steps...)
	a := start(t, &fakeEngines{SubmitFunc: func([]dispatch.Request) (Streams, error) { return streams, nil }})
	conn := a.connect(request(`{"prompt":"x","stream":true,"max_tokens":4000,"return_token_ids":true}`))
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		t.Fatalf("status line %q, %v", line, err)
	}
	if err := conn.tcp.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	<-streams.cancelC
}
