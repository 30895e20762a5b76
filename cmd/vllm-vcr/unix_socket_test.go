package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// curl sends a call as a person would, and returns all that it prints.
func curl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("curl", append([]string{"--silent", "--show-error", "--max-time", "10", "--noproxy", "*", "-w", " %{http_code}"}, args...)...).CombinedOutput()
	if err != nil {
		t.Errorf("curl %q: %v, %s", args, err, out)
	}
	return string(out)
}

func playAt(t *testing.T, path string, more ...string) *program {
	t.Helper()
	p := start(t, nil, append([]string{"play", "--handshake-address", nowhere(t), "--control-address", "unix:" + path}, more...)...)
	if got := p.awaitLog(t, "control API listening")["address"]; got != "unix:"+path {
		t.Errorf("address = %v, want unix:%s", got, path)
	}
	return p
}

func TestControlSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control")
	p := playAt(t, path)
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"http://localhost/stats"}, `"requests_received":0`},
		{[]string{"http://localhost/config", "-X", "PATCH", "-H", "Content-Type: application/json", "-d", `{"max_num_seqs":7}`}, `"max_num_seqs":7`},
		{[]string{"http://evil.test/stats"}, "want one of localhost, 127.0.0.1, [::1]"},
		{[]string{"http://localhost/stats/reset", "-X", "POST", "-H", "Origin: http://localhost"}, "403"},
		{[]string{"http://localhost/stats/reset", "-X", "POST"}, "204"},
	}
	for _, tt := range tests {
		if got := curl(t, append([]string{"--unix-socket", path}, tt.args...)...); !strings.Contains(got, tt.want) {
			t.Errorf("curl %q = %s, want %s", tt.args, got, tt.want)
		}
	}
	file, err := os.Lstat(path)
	if err != nil || file.Mode() != os.ModeSocket|0o600 {
		t.Errorf("socket %v, %v, want mode 0600", file.Mode(), err)
	}
	if strings.Contains(p.printed(), "open to other machines") {
		t.Error("a Unix socket was called open")
	}
	p.signal(t, syscall.SIGTERM)
	p.wantEnd(t, 0, 2*time.Second)
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("after the end: %v, want no file", err)
	}
}

// TestControlSocket_Killed starts again where a process was killed.
func TestControlSocket_Killed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control")
	first := playAt(t, path)
	kill(t, first.cmd.Process.Pid)
	<-first.exited
	if _, err := os.Lstat(path); err != nil {
		t.Fatalf("%v, want the socket that a killed process leaves", err)
	}
	playAt(t, path)
	if got := curl(t, "--unix-socket", path, "http://localhost/health/live"); !strings.HasSuffix(got, " 200") {
		t.Errorf("health = %s, want 200", got)
	}
}

// TestControlSocket_Taken leaves alone what is not a dead process's.
func TestControlSocket_Taken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control")
	first := playAt(t, path)
	play := func(path string) []string {
		return []string{"play", "--handshake-address", nowhere(t), "--control-address", "unix:" + path}
	}
	invoke(t, nil, play(path)...).want(t, exitFailure, "error: --control-address unix:"+path+": "+path+" is in use: another process listens at it")
	if got := curl(t, "--unix-socket", path, "http://localhost/health/live"); !strings.HasSuffix(got, " 200") {
		t.Errorf("health of the first = %s, want 200", got)
	}
	first.signal(t, syscall.SIGTERM)
	first.wantEnd(t, 0, 2*time.Second)

	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	invoke(t, nil, play(path)...).want(t, exitFailure, path+" is there already and is no socket")
	if text, err := os.ReadFile(path); err != nil || string(text) != "precious" {
		t.Errorf("the file has %q, %v", text, err)
	}
	invoke(t, nil, play(path+"/deeper")...).want(t, exitFailure, "error: --control-address unix:"+path+"/deeper: ")
}

func TestControlSocket_Usage(t *testing.T) {
	const allowed = "want HOST:PORT with a port from 0 to 65535, or unix:/PATH of at most 107 bytes"
	for _, address := range []string{"unix:/" + strings.Repeat("x", 107), "unix:relative", "unix:", "unix"} {
		invoke(t, nil, "play", "--control-address", address).want(t, exitUsage, "--control-address: ", allowed)
	}
	folder := t.TempDir()
	longest := folder + "/" + strings.Repeat("x", 107-len(folder)-1)
	playAt(t, longest)
}

// TestControlSocket_SecondSignal removes the file as well when a second signal cuts the shutdown short.
func TestControlSocket_SecondSignal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control")
	p := playAt(t, path, "--shutdown-timeout", "60")
	p.signal(t, syscall.SIGTERM)
	p.signal(t, syscall.SIGINT)
	p.awaitExit(t, patience)
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("after the end: %v, want no file", err)
	}
}
