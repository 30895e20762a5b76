package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nowhere is a handshake address at which no frontend waits: a socket file that is not there.
func nowhere(t *testing.T) string {
	t.Helper()
	return "ipc://" + filepath.Join(t.TempDir(), "none")
}

// get asks the control API of p, wherever it listens.
func (p *program) get(t *testing.T, path string) string {
	t.Helper()
	address, ok := p.awaitLog(t, "control API listening")["address"].(string)
	if !ok {
		t.Fatal("the log names no address of the control API")
	}
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %d %s, %v", path, answer.StatusCode, body, err)
	}
	return string(body)
}

// TestControlPort_Chosen finds the port that was chosen for :0 in the log.
func TestControlPort_Chosen(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", "localhost:0", ":0", "0.0.0.0:0"} {
		t.Run(address, func(t *testing.T) {
			p := start(t, nil, "play", "--handshake-address", nowhere(t), "--control-address", address)
			if body := p.get(t, "/stats"); !strings.Contains(body, `"requests_received":0`) {
				t.Errorf("GET /stats = %s", body)
			}
		})
	}
}

func TestControlPort_FromEnvironment(t *testing.T) {
	p := start(t, []string{"MOCK_CONTROL_PORT=0", "MOCK_ITL_MS=50"}, "play", "--handshake-address", nowhere(t))
	if body := p.get(t, "/config"); !strings.Contains(body, `"inter_token_latency":50,`) {
		t.Errorf("GET /config = %s", body)
	}
	p.awaitLog(t, "control API is open to other machines without a token: bind it to loopback or use --control-token-file")
}

// TestControlPort_Taken ends before any worker is started.
func TestControlPort_Taken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	p := start(t, nil, "play", "--handshake-address", nowhere(t), "--control-address", address)
	if code := p.awaitExit(t, patience); code != 1 {
		t.Errorf("exit code = %d, want 1", code)
	}
	p.awaitNobody(t, patience)
	want := fmt.Sprintf("error: --control-address %s: listen tcp4 %s: bind: address already in use", address, address)
	if got := p.printed(); got != want {
		t.Errorf("printed %q, want just %q", got, want)
	}
}

// TestControlPort_TwoFleets has the second of two with the same port end, and the first untouched by it.
func TestControlPort_TwoFleets(t *testing.T) {
	first := start(t, nil, "play", "--handshake-address", nowhere(t), "--control-address", "127.0.0.1:0")
	address := fmt.Sprint(first.awaitLog(t, "control API listening")["address"])
	invoke(t, nil, "play", "--handshake-address", nowhere(t), "--control-address", address).
		want(t, 1, "--control-address "+address, "address already in use")
	first.get(t, "/health/live")
}

func TestControlPort_NotOurs(t *testing.T) {
	invoke(t, nil, "play", "--handshake-address", nowhere(t), "--control-address", "192.0.2.1:8001"). // of no machine
														want(t, 1, "error: --control-address 192.0.2.1:8001: listen tcp4 192.0.2.1:8001: bind: cannot assign requested address")
}

func TestControlToken(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	play := []string{"play", "--handshake-address", nowhere(t), "--control-address", "127.0.0.1:0", "--control-token-file"}
	empty := file(" \n")
	invoke(t, nil, append(play, empty)...).want(t, 1, "error: --control-token-file: "+empty+" is empty, want a token")
	for _, text := range []string{"two\nlines", "sécret", strings.Repeat("x", 4097)} {
		useless := file(text)
		invoke(t, nil, append(play, useless)...).want(t, 1, fmt.Sprintf("error: --control-token-file: %s holds %d bytes, want at most 4096, one line of ASCII without blanks", useless, len(text)))
	}
	missing := filepath.Join(t.TempDir(), "missing")
	invoke(t, nil, append(play, missing)...).want(t, 1, "error: --control-token-file: open "+missing+": no such file or directory")

	p := start(t, nil, append(play, file("secret\n"))...)
	url := fmt.Sprintf("http://%s/stats", p.awaitLog(t, "control API listening")["address"])
	for token, want := range map[string]int{"": 401, "Bearer wrong": 401, "Bearer secret": 200} {
		request, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", token)
		client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close() // its status is all that counts
		if answer.StatusCode != want {
			t.Errorf("authorization %q: status = %d, want %d", token, answer.StatusCode, want)
		}
	}
	p.signal(t, syscall.SIGTERM)
	if code := p.awaitExit(t, patience); code != 0 || strings.Contains(p.printed(), "secret") {
		t.Errorf("exit code = %d, want 0 and no secret in the log", code)
	}
	p.awaitNobody(t, time.Second)
}
