//go:build conformance

package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// visitor is a client at the level of TCP, which can leave in ways that an HTTP client cannot.
type visitor struct {
	conn *net.TCPConn
	in   *bufio.Reader
}

// dial opens a connection.
func (s *server) dial(t *testing.T) *visitor {
	t.Helper()
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(s.http.base, "http://"), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // closed already, as most are
	if err := conn.SetDeadline(time.Now().Add(callLimit)); err != nil {
		t.Fatal(err)
	}
	return &visitor{conn.(*net.TCPConn), bufio.NewReader(conn)}
}

// send sends a request.
func (v *visitor) send(path string, q question) error {
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(v.conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
	return err
}

// connect opens a connection and sends a request over it.
func (s *server) connect(t *testing.T, path string, q question) *visitor {
	t.Helper()
	v := s.dial(t)
	if err := v.send(path, q); err != nil {
		t.Fatal(err)
	}
	return v
}

// readEvent reads up to the end of the first event of a stream.
func (v *visitor) readEvent(t *testing.T) {
	t.Helper()
	for {
		line, err := v.in.ReadString('\n')
		if err != nil {
			t.Fatalf("first event: %v", err)
		}
		if strings.HasPrefix(line, "data: ") {
			return
		}
	}
}

// The ways in which a client leaves.
var departures = map[string]func(*visitor) error{
	"FIN":        func(v *visitor) error { return v.conn.Close() },
	"half-close": func(v *visitor) error { return v.conn.CloseWrite() },
	"RST": func(v *visitor) error {
		if err := v.conn.SetLinger(0); err != nil {
			return err
		}
		return v.conn.Close()
	},
}

// TestOwnDisconnect has clients leave in every way, at every stage, from a body and from a stream: within a second the engine has let go
// of the request, and counts it aborted.
func TestOwnDisconnect(t *testing.T) {
	stages := map[string]struct {
		patch            string
		occupied, decode bool
	}{
		"queue":   {patch: `{"max_num_seqs": 1, "time_to_first_token": 60000}`, occupied: true},
		"prefill": {patch: `{"max_num_seqs": 8, "time_to_first_token": 60000}`},
		"decode":  {patch: `{"max_num_seqs": 8, "time_to_first_token": 0, "inter_token_latency": 20}`, decode: true},
	}
	srv := ownServer(t, 1)
	for stage, s := range stages {
		for way, leave := range departures {
			for _, streamed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, stream %v", stage, way, streamed), func(t *testing.T) {
					srv.patch(t, s.patch)
					running, waiting := uint64(1), uint64(0)
					if s.occupied {
						waiting = 1
						blocker := srv.begin(t, completion(5))
						srv.awaitRunning(t, 1)
						defer func() {
							blocker.leave()
							srv.awaitIdle(t)
						}()
					}
					q := completion(4000)
					q.Stream = streamed
					v := srv.connect(t, "/v1/completions", q)
					before := srv.awaitStats(t, func(got stats) error {
						if got.Running != running || got.Waiting != waiting {
							return fmt.Errorf("running = %d, waiting = %d, want %d and %d", got.Running, got.Waiting, running, waiting)
						}
						return nil
					})
					if s.decode && streamed {
						v.readEvent(t)
					}
					if err := leave(v); err != nil {
						t.Fatal(err)
					}
					proctest.Eventually(t, time.Second, func() error {
						if got := srv.stats(t); got.Aborted != before.Aborted+1 {
							return fmt.Errorf("aborted = %d, want %d: %+v", got.Aborted, before.Aborted+1, got)
						}
						return nil
					})
				})
			}
		}
	}
	if got := srv.awaitIdle(t); got.Failed != 0 || got.Completed != 0 {
		t.Errorf("stats = %+v, want aborted requests only", got)
	}
}

// TestOwnDisconnect_SeveralChoices leaves from a request that runs as several at the engines.
func TestOwnDisconnect_SeveralChoices(t *testing.T) {
	srv := ownServer(t, 2, "--inter-token-latency", "20")
	for name, q := range map[string]question{"body": completion(4000), "stream": completion(4000).streamed(), "chat": chat(4000).streamed()} {
		t.Run(name, func(t *testing.T) {
			q.N = 3
			srv.disconnect(t, q)
		})
	}
}

// TestOwnDisconnect_KeptAlive has a client that asks one thing after the other over one connection: waiting for it to leave must not eat
// what it sends next.
func TestOwnDisconnect_KeptAlive(t *testing.T) {
	srv := ownServer(t, 1, "--time-to-first-token", "20")
	v := srv.connect(t, "/v1/completions", completion(1))
	const again = "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"
	if _, err := io.WriteString(v.conn, again+again); err != nil { // before the first answer
		t.Fatal(err)
	}
	for i, want := range []string{`"text_completion"`, `"version"`, `"version"`} {
		text := make([]byte, 1)
		for !strings.Contains(string(text), want) {
			b, err := v.in.ReadByte()
			if err != nil {
				t.Fatalf("answer %d: %v after %q", i, err, text)
			}
			text = append(text, b)
		}
	}
	if got, want := srv.awaitIdle(t), (stats{Received: 1, Completed: 1}); got != want {
		t.Errorf("stats = %+v, want %+v", got, want)
	}
}
