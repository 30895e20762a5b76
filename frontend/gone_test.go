package frontend

import (
	"bufio"
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

// TestGone has clients leave in every way and at every stage: the request must be given up within a second.
func TestGone(t *testing.T) {
	ways := map[string]func(*net.TCPConn) error{
		"FIN":        func(c *net.TCPConn) error { return c.Close() },
		"half-close": func(c *net.TCPConn) error { return c.CloseWrite() },
		"RST": func(c *net.TCPConn) error {
			if err := c.SetLinger(0); err != nil {
				return err
			}
			return c.Close()
		},
		"FIN behind another request": func(c *net.TCPConn) error {
			if _, err := io.WriteString(c, request(`{"prompt":"y"}`)); err != nil {
				return err
			}
			return c.Close()
		},
	}
	for way, leave := range ways {
		for _, stage := range []string{"whole", "prefill", "stream"} {
			t.Run(way+" "+stage, func(t *testing.T) { leavesAt(t, stage, leave) })
		}
	}
}

func leavesAt(t *testing.T, stage string, leave func(*net.TCPConn) error) {
	streams := newStreams()
	if stage == "stream" {
		streams = newStreams(says("one", enginecore.FinishNone)...)
	}
	submittedC := make(chan struct{}, 8) // more than there are requests
	a := start(t, &fakeEngines{SubmitFunc: func([]dispatch.Request) (Streams, error) {
		submittedC <- struct{}{}
		return streams, nil
	}})
	conn := a.dial(request(fmt.Sprintf(`{"prompt":"x","max_tokens":500,"stream":%v}`, stage != "whole")))
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
	gate := make(chan struct{})
	steps := says("one two", enginecore.FinishLength)
	steps[1].gate = gate
	submittedC := make(chan *fakeStreams, 2)
	a := start(t, &fakeEngines{SubmitFunc: func([]dispatch.Request) (Streams, error) {
		s := newStreams(append([]step(nil), steps...)...)
		submittedC <- s
		return s, nil
	}})
	conn := a.dial(request(`{"prompt":"x","stream":true}`))
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
	var steps []step
	many := make([]uint32, 10_000)
	for range 1000 {
		steps = append(steps, step{chunk: dispatch.Chunk{Tokens: many}})
	}
	streams := newStreams(steps...)
	a := start(t, &fakeEngines{SubmitFunc: func([]dispatch.Request) (Streams, error) { return streams, nil }})
	conn := a.dial(request(`{"prompt":"x","stream":true,"max_tokens":4000,"return_token_ids":true}`))
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		t.Fatalf("status line %q, %v", line, err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	<-streams.cancelC
}
