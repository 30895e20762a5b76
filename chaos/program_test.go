//go:build chaos

package chaos

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// launch says how to start the program. The zero value runs it as a child of the test, with its log in a file.
type launch struct {
	under  []string // words in front of the command line, such as a taskset
	binary string   // "" = the one under test
	env    []string // all of its environment
	stderr *os.File // nil = the file that log reads
	attr   syscall.SysProcAttr
}

// program is one run of vllm-vcr.
type program struct {
	cmd    *exec.Cmd
	log    string        // file that takes its stderr; "" = somewhere else
	exited chan struct{} // closed once it has been waited for
	before []int         // all that ever were its children, as far as a look at them told

	control *client // of the control API, nil where it was not asked for
	api     *client // of the OpenAI API, likewise
}

// start runs the program with these arguments. When the test ends it and its children are killed, its log is searched for what no test
// may pass over, and a failed test shows the log's end.
func (l launch) start(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{exited: make(chan struct{})}
	if l.binary == "" {
		l.binary = underTest()
	}
	if l.stderr == nil {
		l.stderr = p.openLog(t)
		defer func() { _ = l.stderr.Close() }() // the child has its own
	}
	argv := append(append([]string{}, l.under...), append([]string{l.binary}, args...)...)
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, l.env...)
	p.cmd.Stdout, p.cmd.Stderr = l.stderr, l.stderr
	p.cmd.SysProcAttr = &l.attr
	p.cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL // where no clean-up runs
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %q: %v", argv, err)
	}
	go func() {
		_ = p.cmd.Wait() // the state is read from cmd.ProcessState
		close(p.exited)
	}()
	t.Cleanup(func() { p.bury(t) })
	return p
}

func (p *program) openLog(t *testing.T) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	p.log = f.Name()
	return f
}

func (p *program) bury(t *testing.T) {
	family := append(proctest.Descendants(t, p.pid()), p.before...)
	_ = p.cmd.Process.Kill() // fails only if it has ended, as wanted
	<-p.exited
	proctest.AwaitGone(t, 5*time.Second, family...)
	text := p.printed(t)
	for _, mark := range []string{"panic: ", "fatal error: ", "DATA RACE"} {
		if _, after, found := strings.Cut(text, mark); found && !strings.Contains(t.Name(), "Fatal") {
			t.Errorf("printed %q: %.1000s", mark, after)
		}
	}
	if t.Failed() {
		t.Logf("%q (%v) printed:\n%s", p.cmd.Args, p.cmd.ProcessState, text[max(0, len(text)-4000):])
	}
}

func (p *program) pid() int { return p.cmd.Process.Pid }

// printed is all it has written to stderr so far.
func (p *program) printed(t *testing.T) string {
	t.Helper()
	if p.log == "" {
		return ""
	}
	text, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// line is a line of the log as JSON.
type line map[string]any

// find returns the first line of the log with this message, nil if there is none.
func (p *program) find(t *testing.T, message string) line {
	t.Helper()
	for scan := bufio.NewScanner(bytes.NewBufferString(p.printed(t))); scan.Scan(); {
		var l line
		if json.Unmarshal(scan.Bytes(), &l) == nil && l["message"] == message {
			return l
		}
	}
	return nil
}

// awaitLog waits for a line of the log.
func (p *program) awaitLog(t *testing.T, message string) line {
	t.Helper()
	var l line
	proctest.Eventually(t, patience, func() error {
		if l = p.find(t, message); l != nil {
			return nil
		}
		select {
		case <-p.exited:
			t.Fatalf("ended (%v) without the line %q", p.cmd.ProcessState, message)
		default:
		}
		return fmt.Errorf("no line %q", message)
	})
	return l
}

// awaitControl waits until the control API listens.
func (p *program) awaitControl(t *testing.T) {
	t.Helper()
	p.control = newClient(t, fmt.Sprint(p.awaitLog(t, "control API listening")["address"]))
}

// awaitServing waits until requests are served.
func (p *program) awaitServing(t *testing.T) {
	t.Helper()
	p.awaitControl(t)
	p.api = newClient(t, fmt.Sprint(p.awaitLog(t, "OpenAI API listening")["address"]))
	p.awaitHealthy(t)
}

// awaitHealthy waits until all engines are ready, to the control API and to the front end.
func (p *program) awaitHealthy(t *testing.T) {
	t.Helper()
	proctest.Eventually(t, patience, func() error {
		if err := p.control.want(200, "GET", "/health/ready", ""); err != nil {
			return err
		}
		return p.api.want(200, "GET", "/health", "")
	})
}

// serveArgs is the command line of serve with n engines, both APIs at free ports.
func serveArgs(n int, more ...string) []string {
	return append([]string{"serve", "--port", "0", "--control-address", "127.0.0.1:0", "--engine-count", strconv.Itoa(n)}, more...)
}

// serve runs n engines behind the program's own front end until all are ready.
func serve(t *testing.T, n int, more ...string) *program {
	t.Helper()
	p := launch{}.start(t, serveArgs(n, more...)...)
	p.awaitServing(t)
	return p
}

// playArgs is the command line of play with n engines that look for a frontend there.
func playArgs(handshake string, n int, more ...string) []string {
	return append([]string{"play", "--handshake-address", handshake, "--control-address", "127.0.0.1:0", "--engine-count", strconv.Itoa(n)}, more...)
}

// nowhere is a handshake address at which nobody waits.
func nowhere(t *testing.T) string {
	t.Helper()
	return "ipc://" + filepath.Join(t.TempDir(), "none")
}

func (p *program) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	p.before = append(p.before, proctest.Descendants(t, p.pid())...)
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("%v: %v", s, err)
	}
}

// wantExit waits for the end of the process, and of all its children, within a limit that counts from now.
func (p *program) wantExit(t *testing.T, code int, limit time.Duration) {
	t.Helper()
	begun := time.Now()
	select {
	case <-p.exited:
	case <-time.After(limit):
		t.Fatalf("still runs after %v", limit)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code = %d (%v), want %d", got, p.cmd.ProcessState, code)
	}
	proctest.AwaitGone(t, limit-time.Since(begun), p.before...)
}

// stop ends the program as its user would, and wants that to be quick and clean.
func (p *program) stop(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	p.wantExit(t, 0, 5*time.Second)
}

func kill(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatalf("%v to %d: %v", s, pid, err)
	}
}

// suspend stops a process and returns when all of its threads have stopped. When the test ends it is continued.
func suspend(t *testing.T, pid int) {
	t.Helper()
	kill(t, pid, syscall.SIGSTOP)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) }) // gone, if the test went well
	proctest.Eventually(t, patience, func() error {
		if state := proctest.State(pid); state != "T" {
			return fmt.Errorf("process %d has state %s, want T", pid, state)
		}
		return nil
	})
}

// worker is the command by which a supervisor starts a worker.
func worker() *exec.Cmd {
	cmd := exec.Command(underTest(), "worker")
	cmd.Env = []string{}
	return cmd
}
