//go:build conformance

package conformance

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// TestDemo starts the demo, runs every command that it tells a newcomer to try, and ends it as Ctrl-C does.
func TestDemo(t *testing.T) {
	ports := freePorts(t, 3)
	env := []string{fmt.Sprintf("PORT=%d", ports[0]), fmt.Sprintf("CONTROL_PORT=%d", ports[1]), fmt.Sprintf("HANDSHAKE_PORT=%d", ports[2])}
	demo := launch(t, "demo", env, "./demo.sh")
	proctest.Eventually(t, startupLimit, func() error {
		if !strings.Contains(demo.printed(t), "Ctrl-C ends everything.") {
			return fmt.Errorf("the demo is not ready")
		}
		return nil
	})
	tried := 0
	for line := range strings.Lines(demo.printed(t)) {
		command := strings.TrimSpace(line)
		if !strings.HasPrefix(command, "curl ") {
			continue
		}
		tried++
		if out, err := exec.Command("sh", "-c", command+" --silent --show-error --fail").CombinedOutput(); err != nil || len(out) == 0 {
			t.Errorf("%s: %v, printed %q", command, err, out)
		}
	}
	if tried != 5 {
		t.Errorf("tried %d commands, want 5", tried)
	}
	family := proctest.Children(t, demo.cmd.Process.Pid)
	for _, child := range family {
		family = append(family, proctest.Children(t, child)...) // the workers
	}
	if len(family) != 5 {
		t.Errorf("processes of the demo = %d, want a server, a supervisor and three workers", len(family))
	}
	demo.signal(t, syscall.SIGINT)
	if code := demo.waitExit(t, 10*time.Second); code != 0 {
		t.Errorf("exit code = %d, want 0", code)
	}
	proctest.AwaitGone(t, time.Second, family...)
}

// TestDemo_PortTaken has the demo say which port is taken and how to choose another.
func TestDemo_PortTaken(t *testing.T) {
	srv := serve(t, setup{version: "0.33.0"})
	demo := launch(t, "demo", []string{fmt.Sprintf("PORT=%d", srv.ports.http)}, "./demo.sh")
	if code := demo.waitExit(t, 10*time.Second); code != 1 {
		t.Errorf("exit code = %d, want 1", code)
	}
	if want := fmt.Sprintf("port %d is taken; choose another: PORT=", srv.ports.http); !strings.Contains(demo.printed(t), want) {
		t.Errorf("printed %q, want %q", demo.printed(t), want)
	}
}
