//go:build chaos

package chaos

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// F18: as process 1 of a container, where orphans are left to it.
func TestF18_PID1(t *testing.T) {
	needRoot(t)
	// The shell becomes the program, and what it has started the program's children, of which it knows nothing.
	script := `for i in 1 2 3 4 5; do (sh -c 'sleep 0.2 & exec true' &) ; sleep 0.3 & done; exec "$@"`
	l := launch{under: []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, "sh"}}
	p := l.start(t, serveArgs(2, "--token-source", "echo", "--restart", "on-failure")...)
	p.awaitServing(t)
	first := proctest.Children(t, p.pid())[0]
	proctest.Eventually(t, patience, func() error {
		if orphans := named(proctest.Descendants(t, first), "sleep"); len(orphans) > 0 {
			return fmt.Errorf("orphans %v are left, zombies %v, want them reaped", orphans, zombies(t, first))
		}
		return nil
	})
	inside := proctest.Descendants(t, first)
	victim := p.engineNamed(t, inside, 1)
	kill(t, victim, syscall.SIGKILL)
	p.awaitBack(t, 1, 1)
	proctest.Eventually(t, patience, func() error { return p.answeredBy(0, 1) })
	for _, pid := range append(proctest.Descendants(t, first), first) {
		if proctest.State(pid) == "Z" {
			t.Errorf("process %d is a zombie", pid)
		}
	}
	kill(t, first, syscall.SIGTERM)
	p.wantExit(t, 0, 2*time.Second)
	proctest.AwaitGone(t, time.Second, inside...)
}

// engineNamed finds the process of an engine where the numbers that the API tells are those of another namespace.
func (p *program) engineNamed(t *testing.T, among []int, index int) int {
	t.Helper()
	return inNamespace(t, among, p.engines(t)[index].PID)
}

// inNamespace finds the process that is known by this number in its own namespace.
func inNamespace(t *testing.T, among []int, number int) int {
	t.Helper()
	for _, pid := range among {
		if ids := proctest.Status(t, pid).NSpids; slices.Equal(ids, []uint64{uint64(pid), uint64(number)}) {
			return pid
		}
	}
	t.Fatalf("nobody among %v is process %d of its namespace", among, number)
	return 0
}

// F22: the number of a dead worker is given to a stranger, and then everything is killed.
func TestF22_NumberReused(t *testing.T) {
	needRoot(t)
	l := launch{under: []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", `"$@" & wait; exec sleep 60`, "sh"}}
	p := l.start(t, serveArgs(2, "--token-source", "echo", "--shutdown-timeout", "30", "--inter-token-latency", "20")...)
	p.awaitServing(t)
	first := proctest.Children(t, p.pid())[0]
	inside := proctest.Descendants(t, first)
	number := p.engines(t)[0].PID
	supervisor := proctest.Children(t, first)[0]
	kill(t, inNamespace(t, inside, number), syscall.SIGKILL)
	p.awaitState(t, time.Second, 0, "dead")
	stranger := launch{
		under:  []string{"nsenter", "--target", strconv.Itoa(first), "--pid", "--mount", "sh", "-c", fmt.Sprintf(`echo %d > /proc/sys/kernel/ns_last_pid; setsid "$@" & wait`, number-1), "sh"},
		binary: "/bin/sleep",
	}.start(t, "61")
	var pid int
	proctest.Eventually(t, patience, func() error {
		if strangers := named(proctest.Descendants(t, stranger.pid()), "sleep"); len(strangers) > 0 {
			pid = strangers[0]
			return nil
		}
		return errors.New("no stranger runs")
	})
	if got := inNamespace(t, []int{pid}, number); got != pid {
		t.Fatalf("the stranger is process %d, want %d", got, number)
	}
	s := p.begin(1, 1000)
	p.awaitEngineRunning(t, 1, 1)
	kill(t, supervisor, syscall.SIGTERM)
	p.awaitState(t, patience, 1, "draining")
	kill(t, supervisor, syscall.SIGTERM)
	proctest.AwaitGone(t, 2*time.Second, supervisor)
	s.wait(t)
	if state := proctest.State(pid); state != "S" {
		t.Errorf("the stranger has state %s, want it to sleep on", state)
	}
	kill(t, pid, syscall.SIGKILL)
}

// awaitEngineRunning waits until so many requests run on one engine; another may be dead.
func (p *program) awaitEngineRunning(t *testing.T, index int, n uint64) {
	t.Helper()
	proctest.Eventually(t, patience, func() error {
		if got := p.engines(t)[index].Stats.Running; got != n {
			return fmt.Errorf("%d requests run on engine %d, want %d", got, index, n)
		}
		return nil
	})
}
