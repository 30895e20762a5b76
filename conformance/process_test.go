//go:build conformance || conformance_python

package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// process is one child at the head of a process group of its own.
type process struct {
	name   string
	cmd    *exec.Cmd
	log    string        // file that takes all it prints
	exited chan struct{} // closed once the child has been waited for
}

// launch starts argv with env added to the test's environment. When the test ends the whole group is killed, and a failed
// test shows what the child had printed.
func launch(t *testing.T, name string, env []string, argv ...string) *process {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	p := &process{name: name, cmd: exec.Command(argv[0], argv[1:]...), log: log.Name(), exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log // files, so that Wait does not wait for grandchildren to close a pipe
	// The death signal ends the child where no clean-up runs: a test binary that panics or is interrupted.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // the state is read from cmd.ProcessState
		close(p.exited)
	}()
	t.Cleanup(func() { p.bury(t) })
	return p
}

// bury ends the group, looks through its log for what no test may pass over, and shows the log of a failed test.
func (p *process) bury(t *testing.T) {
	p.kill(t)
	text := p.printed(t)
	for _, mark := range []string{"panic: ", "DATA RACE", "fatal error: "} {
		if _, after, found := strings.Cut(text, mark); found {
			t.Errorf("%s printed %q: %.2000s", p.name, mark, after)
		}
	}
	if t.Failed() {
		t.Logf("%s (%s) printed:\n%s", p.name, p.cmd.ProcessState, lastLines(text, 60))
	}
}

// kill sends SIGKILL to the whole group and waits until nobody of it is left, nor any child of the leader that has a group
// of its own.
func (p *process) kill(t *testing.T) {
	t.Helper()
	family := append(proctest.Children(t, p.cmd.Process.Pid), p.cmd.Process.Pid)
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // fails only if the group has gone, as wanted
	<-p.exited
	proctest.AwaitGone(t, 5*time.Second, family...)
}

// signal sends sig to the child alone, not to its group.
func (p *process) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("%v to %s: %v", sig, p.name, err)
	}
}

// waitExit waits for the child to end by itself and returns its exit code, or −1 if a signal ended it.
func (p *process) waitExit(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(within):
		t.Fatalf("%s still runs after %v", p.name, within)
	}
	return p.cmd.ProcessState.ExitCode()
}

// printed returns all that the child has printed so far.
func (p *process) printed(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// lastLines returns the last n lines of text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
