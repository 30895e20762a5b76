//go:build chaos && linux && amd64

package chaos

import (
	"debug/elf"
	"debug/gosym"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// F4: a panic in the engine's own goroutine.
func TestF4_PanicInEngine_Fatal(t *testing.T) {
	f := listen(t, "tcp://127.0.0.1:0", 3)
	p := f.play(t, 3, "--inter-token-latency", "10")
	for rank := range 3 {
		f.add(t, rank, fmt.Sprint(rank), 100)
	}
	p.awaitRunning(t, 3)
	pid := p.engines(t)[1].PID
	breakFunction(t, pid, "vllm-vcr/worker/engine.(*Engine).Step")
	e := p.awaitState(t, time.Second, 1, "dead")
	if want := "its process exited with code 1"; e.Reason != want {
		t.Errorf("reason %q, want %q", e.Reason, want)
	}
	if state := proctest.State(pid); state != "" {
		t.Errorf("process %d is left in state %s", pid, state)
	}
	if err := p.wantDead(1, "code 1"); err != nil {
		t.Error(err)
	}
	if e.Lost != 1 || e.Stats.closed() != nil {
		t.Errorf("lost %d, %+v, want 1 and closed books", e.Lost, e.Stats)
	}
	f.awaitEnded(t, 2) // those of the others
	text := p.printed(t)
	if n := strings.Count(text, "panic in the engine: runtime error: invalid memory address"); n != 1 {
		t.Errorf("the panic is in the log %d times, want once", n)
	}
	if !strings.Contains(text, "worker/engine.(*Engine).Step") {
		t.Error("the log does not say where")
	}
}

// F5: a panic in a handler of the control API, and in one of the front end.
func TestF5_PanicInHandler(t *testing.T) {
	p := serve(t, 2, "--token-source", "echo")
	front := frontEnd(t, p)
	for _, c := range []struct {
		pid      int
		function string
		call     func(status int) error
	}{
		{p.pid(), "vllm-vcr/supervisor/control.(*Server).getConfig", func(status int) error { return p.control.want(status, "GET", "/config", "") }},
		{front, "vllm-vcr/frontend.(*Server).tokenize", func(status int) error { return p.api.want(status, "POST", "/tokenize", `{"prompt": "x"}`) }},
	} {
		mend := breakFunction(t, c.pid, c.function)
		for range 3 {
			if err := errors.Join(c.call(500), p.control.want(200, "GET", "/stats", ""), p.answeredBy(0, 1)); err != nil {
				t.Errorf("with a broken %s: %v", c.function, err)
			}
		}
		mend()
		if err := c.call(200); err != nil {
			t.Errorf("with %s mended: %v", c.function, err)
		}
	}
	if got := frontEnd(t, p); got != front {
		t.Errorf("the front end is process %d, want %d as before", got, front)
	}
	failed := ""
	for line := range strings.Lines(p.api.must(t, "GET", "/metrics", "")) {
		if strings.HasPrefix(line, "http_requests_total") && strings.Contains(line, `/tokenize`) && strings.Contains(line, `5xx`) {
			failed = strings.TrimSpace(line)
		}
	}
	if !strings.HasSuffix(failed, " 3") && !strings.HasSuffix(failed, " 3.0") {
		t.Errorf("the front end counts %q, want three failures of /tokenize", failed)
	}
	p.stop(t)
}

// breakFunction puts a use of a nil pointer at the beginning of a function of a running process: whoever calls it panics. The one that it
// returns puts back what was there.
func breakFunction(t *testing.T, pid int, name string) (mend func()) {
	t.Helper()
	code := []byte{0x31, 0xc0, 0x89, 0x00} // xor eax, eax; mov [rax], eax: before a frame is made, so that the stack can be told
	at, old := entry(t, name), make([]byte, len(code))
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = memory.Close() }) // what was written is there
	if _, err := memory.ReadAt(old, at); err != nil {
		t.Fatal(err)
	}
	write := func(b []byte) {
		if _, err := memory.WriteAt(b, at); err != nil {
			t.Fatal(err)
		}
	}
	write(code)
	return func() { write(old) }
}

// entry is where a function of the program begins. The tables by which Go tells its stacks know, although the symbols were taken away.
func entry(t *testing.T, name string) int64 {
	t.Helper()
	file, err := elf.Open(underTest())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // only read
	lines, err := file.Section(".gopclntab").Data()
	if err != nil {
		t.Fatal(err)
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(lines, file.Section(".text").Addr))
	if err != nil {
		t.Fatal(err)
	}
	function := table.LookupFunc(name)
	if function == nil {
		t.Fatalf("the program has no function %s", name)
	}
	return int64(function.Entry)
}
