package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/httpserve/certtest"
)

// startSecureServe runs serve with both of its APIs over TLS, and returns their addresses.
func startSecureServe(t *testing.T, openAI, control *certtest.Pair, args ...string) (p *program, openAIAt, controlAt string) {
	t.Helper()
	p = start(t, nil, append([]string{"serve", "--port", "0", "--control-address", "127.0.0.1:0",
		"--ssl-certfile", openAI.CertFile, "--ssl-keyfile", openAI.KeyFile,
		"--control-ssl-certfile", control.CertFile, "--control-ssl-keyfile", control.KeyFile}, args...)...)
	openAIAt = fmt.Sprint(p.awaitLog(t, "OpenAI API listening")["address"])
	controlAt = fmt.Sprint(p.awaitLog(t, "control API listening")["address"])
	await(t, "all engines to join", func() bool {
		return strings.HasSuffix(curl(t, "--cacert", openAI.CertFile, "https://"+openAIAt+"/health"), "200")
	})
	return p, openAIAt, controlAt
}

// await asks again and again.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for deadline := time.After(patience); !done(); {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

const askedChat = `{"messages":[{"role":"user","content":"Hello"}],"max_tokens":5}`

func TestTLS_Serve(t *testing.T) {
	openAI, control := certtest.New(t, "openai"), certtest.New(t, "control")
	p, openAIAt, controlAt := startSecureServe(t, openAI, control)
	chat := []string{"--cacert", openAI.CertFile, "https://" + openAIAt + "/v1/chat/completions", "-H", "Content-Type: application/json", "-d", askedChat}
	if got := curl(t, chat...); !strings.HasSuffix(got, " 200") || !strings.Contains(got, `"completion_tokens":5`) {
		t.Errorf("chat = %s, want 200 with 5 tokens", got)
	}
	stats := []string{"--cacert", control.CertFile, "https://" + controlAt + "/stats"}
	if got := curl(t, stats...); !strings.Contains(got, `"requests_completed":1`) {
		t.Errorf("stats = %s, want one completed", got)
	}
	if got := curl(t, append(stats, "-X", "HEAD", "-I", "-H", "Origin: https://"+controlAt)...); !strings.HasSuffix(got, "200") {
		t.Errorf("own origin = %s, want 200", got)
	}
	if got := curl(t, append(stats, "-H", "Origin: http://"+controlAt)...); !strings.HasSuffix(got, "403") {
		t.Errorf("origin without TLS = %s, want 403", got)
	}
	for _, address := range []string{openAIAt, controlAt} {
		if got := curl(t, "http://"+address+"/health"); !strings.Contains(got, "https://") || !strings.HasSuffix(got, "400") {
			t.Errorf("a call without TLS = %s, want 400", got)
		}
	}

	openAI.Renew(t, "openai 2")
	if got := curl(t, chat...); !strings.HasSuffix(got, " 200") {
		t.Errorf("chat under another certificate = %s, want 200", got)
	}
	p.awaitLog(t, "certificate changed")
	if err := os.WriteFile(control.KeyFile, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := curl(t, stats...); !strings.HasSuffix(got, " 200") {
		t.Errorf("stats beside a broken key = %s, want 200", got)
	}
	p.awaitLog(t, "the changed certificate cannot be used, the one before it stays")
	p.signal(t, syscall.SIGTERM)
	p.wantEnd(t, 0, 2*time.Second)
}

// TestTLS_Gone has a client leave in each stage of a request: its slot is free within a second.
func TestTLS_Gone(t *testing.T) {
	openAI, control := certtest.New(t, "openai"), certtest.New(t, "control")
	_, openAIAt, controlAt := startSecureServe(t, openAI, control, "--max-num-seqs", "1", "--time-to-first-token", "60000")
	stats := func() string { return curl(t, "--cacert", control.CertFile, "https://"+controlAt+"/stats") }
	stages := []struct {
		name, config, busy string
		others             int // that hold the slot
	}{
		{"queue", `{}`, `"running":1,"waiting":1`, 1},
		{"prefill", `{}`, `"running":1,"waiting":0`, 0},
		{"decode", `{"time_to_first_token":0,"inter_token_latency":60000}`, `"running":1,"waiting":0`, 0},
	}
	aborted := 0
	for _, stage := range stages {
		curl(t, "--cacert", control.CertFile, "https://"+controlAt+"/config", "-X", "PATCH", "-H", "Content-Type: application/json", "-d", stage.config)
		var clients []*tls.Conn
		for range stage.others + 1 {
			clients = append(clients, startStream(t, openAI, openAIAt, stage.name == "decode"))
		}
		await(t, stage.busy, func() bool { return strings.Contains(stats(), stage.busy) })
		for i := len(clients) - 1; i >= 0; i-- {
			left := time.Now()
			if err := clients[i].NetConn().Close(); err != nil {
				t.Fatal(err)
			}
			aborted++
			await(t, "the abort", func() bool { return strings.Contains(stats(), fmt.Sprintf(`"requests_aborted":%d`, aborted)) })
			if took := time.Since(left); took > time.Second {
				t.Errorf("%s: aborted after %v, want within a second", stage.name, took)
			}
		}
	}
}

// startStream asks for a stream, and waits for its first event if one comes.
func startStream(t *testing.T, pair *certtest.Pair, address string, comes bool) *tls.Conn {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pair.Roots})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the test may have closed what is below it
	body := strings.Replace(askedChat, "{", `{"stream":true,`, 1)
	if _, err := fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		t.Fatal(err)
	}
	for r := bufio.NewReader(conn); comes; {
		line, err := r.ReadString('\n')
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		comes = !strings.HasPrefix(line, "data: ")
	}
	return conn
}

// TestTLS_BadPair ends every command before anything starts.
func TestTLS_BadPair(t *testing.T) {
	one, two := certtest.New(t, "one"), certtest.New(t, "two")
	missing := filepath.Join(t.TempDir(), "missing")
	tests := []struct {
		flags []string
		code  int
		says  string
	}{
		{[]string{"serve", "--port", "0", "--ssl-certfile", missing}, exitFailure, "error: --ssl-certfile: open " + missing + ": no such file or directory"},
		{[]string{"serve", "--port", "0", "--ssl-certfile", one.CertFile, "--ssl-keyfile", two.KeyFile}, exitFailure,
			"error: --ssl-certfile: certificate " + one.CertFile + " with key " + two.KeyFile + ": tls: private key does not match public key"},
		{[]string{"frontend", "--port", "0", "--ssl-certfile", one.KeyFile, "--ssl-keyfile", one.KeyFile}, exitFailure, "error: --ssl-certfile: certificate " + one.KeyFile},
		{[]string{"play", "--control-address", "127.0.0.1:0", "--control-ssl-certfile", one.CertFile, "--control-ssl-keyfile", missing}, exitFailure,
			"error: --control-ssl-certfile: open " + missing},
		{[]string{"serve", "--ssl-keyfile", one.KeyFile}, exitUsage, "--ssl-keyfile: \"" + one.KeyFile + "\" without --ssl-certfile, want both"},
		{[]string{"play", "--control-ssl-keyfile", one.KeyFile}, exitUsage, "without --control-ssl-certfile, want both"},
	}
	for _, tt := range tests {
		invoke(t, nil, tt.flags...).want(t, tt.code, tt.says)
	}
}
