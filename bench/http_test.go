package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestScenarios_HTTP runs each scenario of servers for a moment, one with commands and the others with a URL.
func TestScenarios_HTTP(t *testing.T) {
	cases := []struct {
		name   string
		server server
		want   []string
	}{
		{"http", fakeURL(t, "good"), []string{frontEndCost, "streamed tokens", "first token after p99"}},
		{"http-paced", fakeCommand(t, "good"), []string{"added to the first token p50", "added to later tokens p99"}},
		{"http-streams", fakeURL(t, "good"), []string{"all processes resident", "later token late p50"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := options{rounds: 1, servers: []server{c.server}, duration: briefly}
			for _, s := range scenarios {
				if s.name != c.name {
					continue
				}
				fs, err := o.trials(s)[0].run(within(t))
				if err != nil {
					t.Fatal(err)
				}
				checkHTTP(t, fs, c.want)
			}
		})
	}
}

func checkHTTP(t *testing.T, fs figures, want []string) {
	t.Helper()
	for _, name := range append(want, "requests", "front end CPU", "front end resident") {
		if f, ok := fs.find(name); !ok || f.Value == 0 {
			t.Errorf("figure %q = %v, want one other than 0 among %+v", name, f.Value, fs.list)
		}
	}
	if f, _ := fs.find("tokens per event"); f.Value != 4 {
		t.Errorf("tokens per event = %v, want 4", f.Value)
	}
}

// TestDrive_BadServer: what a server does wrong is an error and not a figure.
func TestDrive_BadServer(t *testing.T) {
	for behaviour, want := range map[string]string{
		"busy":     "429",
		"whole":    "the body is not chunked",
		"long":     "a stream of 128 tokens with 160 letters",
		"short":    "a stream whose usage is 127 tokens, want 128",
		"error":    `the stream tells of an error: {"error":{"message":"I am wrong"}}`,
		"mute":     "a stream without text",
		"cut":      "unexpected EOF",
		"endless":  "ended without an end marker",
		"nameless": "no model in",
	} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			_, _, err := drive(within(t), fakeURL(t, behaviour), brief, time.Minute)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error = %v, want one that says %q", err, want)
			}
		})
	}
}

// TestDrive_BadCommand: a command that ends tells what it said last, and one that can't be started what it is.
func TestDrive_BadCommand(t *testing.T) {
	lost := fakeCommand(t, "good")
	lost.engines.command = []string{"/no/such/engine"}
	for want, v := range map[string]server{"last said:\nI crash": fakeCommand(t, "crash"), "/no/such/engine": lost} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			_, _, err := drive(within(t), v, brief, time.Minute)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error = %v, want one that says %q", err, want)
			}
		})
	}
}

// TestServer_Open_Ill: a server that doesn't get healthy is waited for no longer than ctx says.
func TestServer_Open_Ill(t *testing.T) {
	v := fakeURL(t, "ill")
	ctx, cancel := context.WithTimeout(within(t), 2*time.Second) // enough for one answer, on any machine
	defer cancel()
	if _, err := v.open(ctx, setup{}); err == nil || !strings.Contains(err.Error(), "status 503: I am ill") {
		t.Errorf("error = %v, want one that says how the server is", err)
	}
}

func TestListenerOf(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if pid, err := listenerOf(ln.Addr().String()); pid != os.Getpid() || err != nil {
		t.Errorf("listener = %d, %v, want %d", pid, err, os.Getpid())
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		ln.Addr().String(): "listens on port",
		"nowhere":          "missing port",
		"host:port":        `port of "host:port"`,
	} {
		if pid, err := listenerOf(address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("listener of %s = %d, %v, want an error that says %q", address, pid, err, want)
		}
	}
}

func TestParseServer(t *testing.T) {
	cases := map[string]string{
		"sim=http://127.0.0.1:80/": "sim http://127.0.0.1:80 []",
		"sim=/tmp/sim -p {port}":   "sim  [/tmp/sim -p {port}]",
	}
	for arg, want := range cases {
		v, err := parseServer(arg)
		if got := fmt.Sprint(v.name, " ", v.url, " ", v.front.command); got != want || err != nil {
			t.Errorf("server of %q = %s, %v, want %s", arg, got, err, want)
		}
	}
	for arg, want := range map[string]string{
		"http://x":     "want NAME=http://HOST:PORT or NAME=COMMAND",
		"=http://x":    "want NAME=http://HOST:PORT or NAME=COMMAND",
		"sim=/tmp/sim": "no {port}",
	} {
		if _, err := parseServer(arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("server of %q: error = %v, want one that says %q", arg, err, want)
		}
	}
}

// TestDefaultServers: both get the same engines, and ours is judged.
func TestDefaultServers(t *testing.T) {
	s := setup{engines: 2, seqs: 9, http: "127.0.0.1:80"}
	const handshake = "tcp://127.0.0.1:90"
	own, theirs := ownServer(), vllmServer()
	flags := "--token-source random --vocab-size 94 --engine-count 2 --max-num-seqs 9 --max-num-batched-tokens 2048 --time-to-first-token 0 --inter-token-latency 0"
	for want, argv := range map[string][]string{
		"bin/vllm-vcr serve --port 80 --handshake-address " + handshake + " " + flags:                       own.front.argv(s, handshake),
		"bin/vllm-vcr play --handshake-address " + handshake + " --vllm-version 0.33 " + flags:              theirs.engines.argv(s, handshake),
		"127.0.0.1 --port 80 --data-parallel-size 2 --data-parallel-size-local 0 --data-parallel-address 1": theirs.front.argv(s, handshake),
		"--data-parallel-rpc-port 90": theirs.front.argv(s, handshake),
	} {
		if got := strings.Join(argv, " "); !strings.Contains(got, want) {
			t.Errorf("command = %s, want %s in it", got, want)
		}
	}
	if defaultServers()[0].name != own.name {
		t.Errorf("the first server is %s, want %s", defaultServers()[0].name, own.name)
	}
	if _, err := exec.LookPath("env"); err != nil {
		t.Error(err)
	}
}
