package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// fakeArg makes the test binary an engine command instead of a test.
const fakeArg = "fake-engine"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == fakeArg {
		os.Exit(fakeEngine(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == fakeHTTPArg {
		os.Exit(fakeServer(os.Args[2:]))
	}
	if len(os.Args) > 1 && slices.Contains([]string{limitArg, busyArg, idleArg, probeArg}, os.Args[1]) {
		if err := command(context.Background(), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // for the fake engines: what is raced in them shows at once or never
	goleak.VerifyTestMain(m)
}

// fake is the test binary as an engine command that behaves in the given way.
func fake(t *testing.T, behaviour string) target {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return target{name: "fake", command: []string{self, fakeArg, "{handshake}", "{engines}", "{control}", behaviour}}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestScenarios runs each scenario for a moment against an engine that answers at once. One at a time: some of them take
// all the processors there are.
func TestScenarios(t *testing.T) {
	want := map[string][]string{
		"idle":       {"worker resident", "worker CPU", "worker wake-ups", "all processes CPU"},
		"ready":      {"command started after", "command started before"},
		"pacing":     {"first token late p50", "later token late p99", "gap off max", "first token late by the engine p50", "bare timerfd late p99"},
		"fast":       {"512 running: later token late p99", "2048 running: tokens", "bare timerfd late max"},
		"throughput": {"1 running: tokens", "2048 running: engine CPU per million tokens", "64 running: 1024-token prompts: share of the short ones' tokens"},
		"transport":  {"outputs per message", "bare PUSH to PULL, as tokens"},
		"fleet":      {"tokens of all", "that of one engine alone, times"},
		"control":    {"idle: GET /config p50", "busy: PATCH /config p99", "busy: GET /stats max", "busy: bare ping of as many processes p50"},
	}
	for _, s := range scenarios {
		if s.run == nil || s.named {
			continue // a server's, see TestScenarios_HTTP, or one that takes its time, see TestGrowth and TestAwaitReceived
		}
		t.Run(s.name, func(t *testing.T) {
			fs, err := s.run(within(t), fake(t, "good"), 500*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range want[s.name] {
				if _, ok := fs.find(name); !ok {
					t.Errorf("no figure %q among %+v", name, fs.list)
				}
			}
			if f, ok := fs.find("requests"); ok && f.Value <= 0 {
				t.Errorf("requests per second = %v, want more than 0", f.Value)
			}
		})
	}
}

// TestScenarios_BadEngine: what an engine does wrong is an error and not a figure.
func TestScenarios_BadEngine(t *testing.T) {
	for behaviour, want := range map[string]string{
		"short":  "ended with 127 tokens and reason length, want 128 and length",
		"abort":  "ended with 128 tokens and reason abort",
		"stray":  `output of the request "nobody's", which isn't running`,
		"dead":   "said that it is dead",
		"leave":  "lost",
		"crash":  "last said:\nI crash",
		"babble": "outputs: ",
	} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			_, err := measureTransport(within(t), fake(t, behaviour), time.Minute)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error = %v, want one that says %q", err, want)
			}
		})
	}
}

// TestRun has an engine and a peer in one run, from the command line to the files.
func TestRun(t *testing.T) {
	self := fake(t, "good")
	file := filepath.Join(t.TempDir(), "figures.json")
	args := []string{"-run", "^idle$", "-rounds", "2", "-duration", "100ms", "-json", file, "-peer", "other=" + strings.Join(self.command, " "), "--"}
	var out bytes.Buffer
	if err := run(within(t), append(args, self.command...), &out); err != nil {
		t.Fatalf("run: %v\n%s", err, out.String())
	}
	for _, want := range []string{"calibration", "idle: 1 engine", "engine", "other", "ratio", "≤ 20", "PASS"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Machine   machine
		Scenarios []struct {
			Name string
			Runs []struct {
				Engine  string
				Figures []figure
			}
		}
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatalf("figures: %v\n%s", err, b)
	}
	if len(got.Scenarios) != 1 || len(got.Scenarios[0].Runs) != 2 || len(got.Scenarios[0].Runs[1].Figures) != 5 || got.Machine.CPUs == 0 {
		t.Errorf("figures = %+v, want one scenario with two engines and five figures", got)
	}
}

// TestRun_Error: a command that can't be started fails the run and not the machine.
func TestRun_Error(t *testing.T) {
	var out bytes.Buffer
	err := run(within(t), []string{"-run", "idle", "--", "/no/such/engine", "{handshake}"}, &out)
	if err == nil || !strings.Contains(err.Error(), "/no/such/engine") || !strings.Contains(out.String(), "/no/such/engine") {
		t.Errorf("error = %v, want one that names the command, as the output does:\n%s", err, out.String())
	}
}

func TestRun_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := run(ctx, nil, &out); err == nil {
		t.Error("an interrupted run ended without an error")
	}
}
