package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

// asProgram makes the test binary behave as vllm-vcr. Workers inherit it, and so do what they are started for.
const asProgram = "VLLM_VCR_TEST_AS_PROGRAM"

// patience is how long a test waits for an event before it fails.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// program is one run of vllm-vcr in a process of its own, with nothing in its environment but what the test gives.
type program struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed once it has been waited for
	silent chan struct{} // closed at the end of stderr: neither it nor a worker is left

	mu    sync.Mutex
	lines []string      // of stderr
	moreC chan struct{} // closed and replaced with every line
}

// start runs vllm-vcr and reads what it logs. When the test ends it is killed, and a failed test shows what it had printed.
func start(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	stderr, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := launch(t, theirs, env, args...)
	go p.read(stderr)
	return p
}

// launch is start with a stderr whose other end is the caller's business, p.silent included. It closes stderr here.
func launch(t *testing.T, stderr *os.File, env []string, args ...string) *program {
	t.Helper()
	p := &program{
		cmd: command(t, env, args...), exited: make(chan struct{}), silent: make(chan struct{}), moreC: make(chan struct{}),
	}
	p.cmd.Stderr = stderr
	err := p.cmd.Start()
	_ = stderr.Close() // the child has its own
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the state is read from cmd.ProcessState
		close(p.exited)
	}()
	t.Cleanup(func() { p.bury(t) })
	return p
}

func command(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	path := os.Getenv("VLLM_VCR_BIN") // the built binary, where make chaos wants that
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		path = self
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append([]string{asProgram + "=1", "GORACE=atexit_sleep_ms=0"}, env...) // the race detector dawdles at exit otherwise
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}               // where no clean-up runs
	return cmd
}

func (p *program) read(stderr io.ReadCloser) {
	defer close(p.silent)
	defer stderr.Close()
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		close(p.moreC)
		p.moreC = make(chan struct{})
		p.mu.Unlock()
	}
}

func (p *program) bury(t *testing.T) {
	_ = p.cmd.Process.Kill() // fails only if it has ended, as wanted
	<-p.exited
	p.awaitNobody(t, patience)
	if t.Failed() {
		t.Logf("vllm-vcr %q (%v) printed:\n%s", p.cmd.Args[1:], p.cmd.ProcessState, p.printed())
	}
}

// printed returns what it has written to stderr so far.
func (p *program) printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

func (p *program) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("%v: %v", s, err)
	}
}

// awaitExit waits for the end of the process and returns its exit code.
func (p *program) awaitExit(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(limit):
		t.Fatalf("the process still runs after %v", limit)
	}
	return p.cmd.ProcessState.ExitCode()
}

// awaitNobody waits until no process is left that had its stderr, which every worker inherits.
func (p *program) awaitNobody(t *testing.T, limit time.Duration) {
	t.Helper()
	select {
	case <-p.silent:
	case <-time.After(limit):
		t.Errorf("a process is left after %v", limit)
	}
}

// logLine is a line of the log as JSON.
type logLine map[string]any

// awaitLog waits for a line with this message and returns it. It looks at lines of the past too.
func (p *program) awaitLog(t *testing.T, message string) logLine {
	t.Helper()
	deadline := time.After(patience)
	for next := 0; ; {
		p.mu.Lock()
		lines, moreC := p.lines[next:], p.moreC
		next = len(p.lines)
		p.mu.Unlock()
		for _, text := range lines {
			var line logLine
			if json.Unmarshal([]byte(text), &line) == nil && line["message"] == message {
				return line
			}
		}
		select {
		case <-moreC:
		case <-p.silent:
			t.Fatalf("all ended without the line %q", message)
		case <-deadline:
			t.Fatalf("no line %q in %v", message, patience)
		}
	}
}

// result is what a run that ended by itself left.
type result struct {
	code           int
	stdout, stderr string
}

// invoke runs vllm-vcr to its end.
func invoke(t *testing.T, env []string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := command(t, env, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	impatient := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer impatient.Stop()
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// want compares the exit code, and looks for texts in what was printed to stderr.
func (r result) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code = %d, want %d", r.code, code)
	}
	for _, text := range texts {
		if !strings.Contains(r.stderr, text) {
			t.Errorf("stderr has no %q", text)
		}
	}
	if t.Failed() {
		t.Logf("stderr:\n%s", r.stderr)
	}
}

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("differs from %s; if that is meant, run go test ./cmd/vllm-vcr -update\n%s", path, firstDifference(got, string(want)))
	}
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d: got %q, want %q", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("got %d lines, want %d", len(a), len(b))
}
