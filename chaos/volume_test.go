//go:build chaos

package chaos

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// F46: streams that are read at a byte a second.
func TestF46_SlowReaders(t *testing.T) {
	const tokens, perStream = 2000, 512 << 10
	readers := sized(1000, 200)
	p := serve(t, 2, "--token-source", "echo", "--max-num-seqs", "2000")
	front := frontEnd(t, p)
	before, _ := resident(t, front)
	var workers int64
	for _, e := range p.engines(t) {
		_, peak := resident(t, e.PID)
		workers += peak
	}
	stop := make(chan struct{})
	var reading sync.WaitGroup
	body := fmt.Sprintf(`{"prompt": %q, "max_tokens": %d, "stream": true, "ignore_eos": true}`, echoed, tokens)
	for range readers {
		conn := dialNarrow(t, p.api.address)
		if _, err := fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
			t.Fatal(err)
		}
		reading.Go(func() { sip(conn, stop) })
	}
	proctest.Eventually(t, patience, func() error {
		if s := p.stats(t); s.Completed != uint64(readers) {
			return fmt.Errorf("%+v, want %d completed: no engine waits for a reader", s, readers)
		}
		return nil
	})
	p.control.must(t, "PATCH", "/config", `{"inter_token_latency": 20}`)
	const echoes = 5 // 45 tokens, 0.9 s
	for range 5 {
		begun, s := time.Now(), p.begin(-1, echoes)
		if err := s.wait(t).exact(echoes); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > 1500*time.Millisecond {
			t.Errorf("another client's stream of 0.9 s took %v, want at most 1.5 s", took)
		}
	}
	after, _ := resident(t, front)
	t.Logf("the front end uses %d KB for each slow reader", (after-before)>>10/int64(readers))
	if after-before > int64(readers)*perStream {
		t.Errorf("the front end's memory rose by %d MB, want at most %d KB for each reader", (after-before)>>20, perStream>>10)
	}
	close(stop)
	reading.Wait()
	proctest.Eventually(t, patience, func() error {
		if n := len(proctest.Descriptors(t, front)); n > 50 {
			return fmt.Errorf("the front end still has %d descriptors", n)
		}
		return nil
	})
	p.awaitIdle(t)
	p.stop(t)
}

// dialNarrow is dial with a receive buffer that holds as little as the kernel allows.
func dialNarrow(t *testing.T, address string) net.Conn {
	t.Helper()
	d := net.Dialer{Timeout: patience, Control: func(_, _ string, c syscall.RawConn) error {
		var fault error
		return errors.Join(c.Control(func(fd uintptr) {
			fault = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 2048)
		}), fault)
	}}
	conn, err := d.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // closed already, if all went well
	return conn
}

// sip reads a byte a second until stop.
func sip(conn net.Conn, stop <-chan struct{}) {
	defer func() { _ = conn.Close() }() // with most of it unread
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for b := make([]byte, 1); ; {
		select {
		case <-tick.C:
		case <-stop:
			return
		}
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
			return
		}
		_, _ = conn.Read(b) // nothing may have come yet
	}
}

// F51: a flood of connections that say nothing, at both APIs, with 256 descriptors for each process.
func TestF51_ConnectionFlood(t *testing.T) {
	p := launch{under: []string{"prlimit", "--nofile=256"}}.start(t, serveArgs(2, "--token-source", "echo", "--restart", "on-failure")...)
	p.awaitServing(t)
	var conns []net.Conn
	release := func() {
		for _, c := range conns {
			_ = c.Close() // it was never used
		}
		conns = nil
	}
	defer release()
	flood := func(address string, n int) {
		var mu sync.Mutex
		var dialling sync.WaitGroup
		for range 50 {
			dialling.Go(func() {
				for range n / 50 {
					conn, err := net.DialTimeout("tcp", address, 100*time.Millisecond) // beyond the backlog nobody answers
					if err != nil {
						continue
					}
					mu.Lock()
					conns = append(conns, conn)
					mu.Unlock()
				}
			})
		}
		dialling.Wait()
	}
	flooded := time.Now()
	flood(p.control.address, sized(6000, 2000))
	flood(p.api.address, sized(6000, 2000))
	t.Logf("%d connections are open", len(conns))
	for range 10 {
		begun, c := time.Now(), newClient(t, p.control.address) // a connection of its own
		if err := c.want(200, "GET", "/stats", ""); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("GET /stats took %v, want at most 5 s", took)
		}
	}
	kill(t, p.engines(t)[0].PID, syscall.SIGKILL)
	p.awaitBack(t, 0, 1) // which needs descriptors
	n, took := strings.Count(p.printed(t), "cannot accept connections"), time.Since(flooded)
	if float64(n) > 10*took.Seconds() {
		t.Errorf("%d lines about the shortage in %v, want at most 10 a second", n, took)
	}
	used, begun := proctest.CPUTime(p.pid())+proctest.CPUTime(frontEnd(t, p)), time.Now()
	<-time.After(2 * time.Second)
	if share := (proctest.CPUTime(p.pid()) + proctest.CPUTime(frontEnd(t, p)) - used).Seconds() / time.Since(begun).Seconds(); share > 0.1 {
		t.Errorf("under the flood it uses %.0f %% of a core, want at most 10", 100*share)
	}
	release()
	proctest.Eventually(t, patience, func() error { return p.answeredBy(0, 1) })
	p.stop(t)
}

// F53: requests that ask for too much of everything are refused, each within a second.
func TestF53_TooMuch(t *testing.T) {
	p := serve(t, 1)
	million := func(one string) string { return strings.TrimSuffix(strings.Repeat(one+",", 1_000_000), ",") }
	for name, body := range map[string]string{
		"a prompt of a million ids":         `{"prompt": [` + million("1") + `]}`,
		"a prompt of a million words":       `{"prompt": "` + strings.Repeat("word ", 1_000_000) + `"}`,
		"a prompt of one word of 5 MB":      `{"prompt": "` + strings.Repeat("a", 5_000_000) + `"}`,
		"a prompt of 5 MB of blanks":        `{"prompt": "` + strings.Repeat(" ", 5_000_000) + `"}`,
		"a million prompts":                 `{"prompt": [` + million(`"x"`) + `]}`,
		"max_tokens 2^31":                   `{"prompt": "x", "max_tokens": 2147483648}`,
		"max_tokens 2^63":                   `{"prompt": "x", "max_tokens": 9223372036854775808}`,
		"n of a million":                    `{"prompt": "x", "n": 1000000}`,
		"best_of a million":                 `{"prompt": "x", "best_of": 1000000, "n": 1000000}`,
		"a million stop strings":            `{"prompt": "x", "stop": [` + million(`"s"`) + `]}`,
		"a million stop tokens":             `{"prompt": "x", "stop_token_ids": [` + million("1") + `]}`,
		"a million biased tokens":           `{"prompt": "x", "logit_bias": {` + million(`"1":1`) + `}}`,
		"a million logprobs":                `{"prompt": "x", "logprobs": 1000000}`,
		"a negative number of tokens":       `{"prompt": "x", "max_tokens": -1}`,
		"a fraction of a token":             `{"prompt": "x", "max_tokens": 1.5}`,
		"all of it":                         `{"prompt": [` + million("1") + `], "max_tokens": 2147483648, "n": 1000000, "stop": [` + million(`"s"`) + `]}`,
		"a long stop string":                `{"prompt": "x", "max_tokens": 2147483648, "stop": "` + strings.Repeat("s", 10_000_000) + `"}`,
		"a stop string of many beginnings":  `{"prompt": "x", "max_tokens": 2147483648, "stop": "` + strings.Repeat("a", 1_000_000) + `b"}`,
		"a prompt of a million empty lists": `{"prompt": [` + million("[]") + `]}`,
	} {
		begun := time.Now()
		status, text, err := p.api.call("POST", "/v1/completions", body)
		took := time.Since(begun)
		if err != nil || status != 400 || !strings.HasPrefix(text, `{"error":`) {
			t.Errorf("%s: %d %.200s, %v, want 400 in JSON", name, status, text, err)
		}
		if took > time.Second {
			t.Errorf("%s: refused after %v, want at most 1 s", name, took)
		}
	}
	if got := p.stats(t); got != (stats{}) {
		t.Errorf("%+v, want nothing to have reached the engine", got)
	}
	if err := p.api.want(200, "POST", "/v1/completions", `{"prompt": "x", "max_tokens": 1}`); err != nil {
		t.Error(err)
	}
}
