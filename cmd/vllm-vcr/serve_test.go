package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// startServe runs serve over n engines and waits until all have joined.
func startServe(t *testing.T, n int, args ...string) *program {
	t.Helper()
	p := start(t, nil, append([]string{"serve", "--port", "0", "--control-address", "127.0.0.1:0", "--engine-count", strconv.Itoa(n)}, args...)...)
	p.awaitHealthy(t)
	return p
}

// awaitHealthy waits until the front end of p knows all its engines, which is a little after these say that they are ready.
func (p *program) awaitHealthy(t *testing.T) {
	t.Helper()
	url := fmt.Sprintf("http://%s/health", p.awaitLog(t, "OpenAI API listening")["address"])
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.After(patience); ; {
		answer, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("GET %s: %d for %v, want 200", url, answer.StatusCode, patience)
		}
	}
}

// chat asks the front end of p for an answer of so many tokens.
func (p *program) chat(t *testing.T, tokens int) (int, string) {
	t.Helper()
	address, ok := p.awaitLog(t, "OpenAI API listening")["address"].(string)
	if !ok {
		t.Fatal("the log names no address of the OpenAI API")
	}
	body, err := json.Marshal(map[string]any{"messages": []any{map[string]any{"role": "user", "content": "Hello"}}, "max_tokens": tokens})
	if err != nil {
		t.Fatal(err)
	}
	return do(t, http.MethodPost, "http://"+address+"/v1/chat/completions", string(body))
}

func (p *program) wantAnswer(t *testing.T, tokens int) {
	t.Helper()
	status, text := p.chat(t, tokens)
	var answer struct {
		Usage struct {
			Completion int `json:"completion_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK || answer.Usage.Completion != tokens {
		t.Fatalf("answer %d with %d tokens, want 200 with %d: %v\n%s", status, answer.Usage.Completion, tokens, err, text)
	}
}

func TestServe_Answers(t *testing.T) {
	p := startServe(t, 2)
	p.wantAnswer(t, 12)
	if stats := p.get(t, "/stats"); !strings.Contains(stats, `"requests_completed":1`) {
		t.Errorf("stats = %s, want one completed", stats)
	}
	p.signal(t, syscall.SIGTERM)
	p.wantEnd(t, 0, 2*time.Second)
}

// The front end of another process serves engines that join it.
func TestFrontend_OverPlay(t *testing.T) {
	handshake := "ipc://" + filepath.Join(t.TempDir(), "handshake")
	front := start(t, nil, "frontend", "--handshake-address", handshake, "--engine-count", "2", "--port", "0")
	engines := start(t, nil, "play", "--handshake-address", handshake, "--engine-count", "2")
	front.awaitHealthy(t)
	front.wantAnswer(t, 5)
	front.signal(t, syscall.SIGTERM)
	front.wantEnd(t, 0, 3*time.Second)
	engines.awaitLog(t, "frontend lost")
	engines.signal(t, syscall.SIGTERM)
	engines.wantEnd(t, 0, 2*time.Second)
}

// The end of the front end is the end of serve, since engines without it serve nobody.
func TestServe_FrontEndDies(t *testing.T) {
	p := startServe(t, 2)
	kill(t, proctest.ChildNamed(t, p.cmd.Process.Pid, frontEndProcess))
	p.wantEnd(t, exitFailure, patience)
	if want := "error: front end: its process was ended by signal 9 (killed)"; !strings.Contains(p.printed(), want) {
		t.Errorf("printed %q, want %q", p.printed(), want)
	}
}

// With a restart of engines goes that of the front end: it comes back at the same port, and the engines join it again.
func TestServe_FrontEndComesBack(t *testing.T) {
	p := startServe(t, 2, "--restart", "on-failure", "--inter-token-latency", "20")
	p.wantAnswer(t, 3)
	url := fmt.Sprintf("http://%s/v1/completions", p.awaitLog(t, "OpenAI API listening")["address"])
	asked := make(chan error, 1)
	go func() {
		answer, err := http.Post(url, "application/json", strings.NewReader(`{"prompt": "Hello", "max_tokens": 20000}`))
		if err == nil {
			err = fmt.Errorf("status %d", answer.StatusCode)
			answer.Body.Close()
		}
		asked <- err
	}()
	p.awaitStats(t, `"running":1`)
	kill(t, proctest.ChildNamed(t, p.cmd.Process.Pid, frontEndProcess))
	if err := <-asked; !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a request that ran: %v, want the end of its connection", err)
	}
	p.awaitLog(t, "front end was started again")
	p.awaitHealthy(t)
	for range 4 {
		p.wantAnswer(t, 3)
	}
	if text := p.get(t, "/metrics"); !strings.Contains(text, "\nvllm_vcr_front_end_restarts_total 1\n") {
		t.Errorf("metrics do not tell of one restart:\n%s", text)
	}
	p.awaitStats(t, `"requests_received":6,"requests_completed":5,"requests_failed":0,"requests_aborted":1,"running":0,"waiting":0`)
	p.signal(t, syscall.SIGTERM)
	p.wantEnd(t, 0, 3*time.Second)
}

// awaitStats waits until the counters read so.
func (p *program) awaitStats(t *testing.T, want string) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.After(patience); !strings.Contains(p.get(t, "/stats"), want); {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("stats = %s for %v, want %s", p.get(t, "/stats"), patience, want)
		}
	}
}

func TestServe_SupervisorKilled(t *testing.T) {
	p := startServe(t, 2)
	kill(t, p.cmd.Process.Pid)
	<-p.exited
	p.awaitNobody(t, 2*time.Second)
}

func TestServe_PortTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	p := start(t, nil, "serve", "--port", port)
	p.wantEnd(t, exitFailure, patience)
	if !strings.Contains(p.printed(), port) || !strings.Contains(p.printed(), "address already in use") {
		t.Errorf("printed %q, want the port that is taken", p.printed())
	}
}

func TestServe_FrontEndByHand(t *testing.T) {
	invoke(t, nil, frontEndProcess).want(t, exitUsage, "this command is for a supervisor to start, use serve")
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
