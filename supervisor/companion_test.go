package supervisor

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/logs"
	"vllm-vcr/proctest"
)

// The ways in which a companion of these tests behaves.
const (
	companionVar  = "SUPERVISOR_TEST_COMPANION"
	listens       = "listens"       // until its socket ends
	drains        = "drains"        // and leaves by itself when it was told to
	neverListens  = "never listens" // and says nothing
	leavesAtOnce  = "leaves at once"
	leavesLater   = "leaves later" // after it has listened
	staysForever  = "stays for ever"
	leavesTold    = "leaves when told of a log filter"
	testHandshake = "tcp://127.0.0.1:4242"
)

// playCompanion is the process of a companion.
func playCompanion(role string) int {
	conn, err := net.FileConn(os.NewFile(3, "supervisor"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var start ipc.Start
	frame, _, err := ipc.ReadFrame(conn, nil)
	if err != nil || frame.Decode(&start) != nil || start.Check() != nil || role == leavesAtOnce {
		return 3
	}
	if role != neverListens {
		word, err := ipc.Append(nil, ipc.KindState, 0, ipc.State{State: ipc.StateListening, Handshake: testHandshake, HTTP: start.Config.Host})
		if err != nil {
			return 1
		}
		_, _ = conn.Write(word) // the supervisor may have gone
	}
	if role == leavesLater {
		return 4
	}
	for {
		var call ipc.Call
		frame, _, err := ipc.ReadFrame(conn, nil)
		if err == nil && frame.Decode(&call) == nil && call.Op == ipc.OpDrain && role == drains {
			return 0
		}
		if err == nil && call.Op == ipc.OpLog && role == leavesTold {
			return 6
		}
		if err != nil && role != staysForever {
			return 0
		}
		if err != nil {
			<-time.After(time.Minute) // it should be killed long before
		}
	}
}

// startCompanion starts one that behaves in the given way.
func startCompanion(t *testing.T, role string, within time.Duration) (*Companion, ipc.State, error) {
	t.Helper()
	return startCompanions(t, config.Default(), within, role)
}

// startCompanions starts one whose processes behave in the given ways, the last of which serves all that follow.
func startCompanions(t *testing.T, cfg config.Config, within time.Duration, roles ...string) (*Companion, ipc.State, error) {
	t.Helper()
	root := logs.New(&text{}, logs.JSON, logs.Filter{})
	t.Cleanup(func() { _ = root.Close() })
	cfg.Host = "a host"
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	started := 0
	return StartCompanion(ctx, CompanionOptions{Config: cfg, Log: root, Command: func() *exec.Cmd {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), companionVar+"="+roles[min(started, len(roles)-1)])
		started++
		return cmd
	}})
}

// mortals starts one that is started again when it dies, soon and a few times.
func mortals(t *testing.T, pause time.Duration, roles ...string) *Companion {
	t.Helper()
	cfg := config.Default()
	cfg.Restart = config.RestartOnFailure
	c, _, err := startCompanions(t, cfg, patience, roles...)
	if err != nil {
		t.Fatal(err)
	}
	c.timing.firstBackoff, c.timing.lastBackoff, c.timing.deathsAllowed = pause, pause, 4
	return c
}

// With a restart of workers goes that of the companion, and it is as it was: killed, it comes back, also where it needs two
// attempts; stopped, it ends.
func TestCompanion_StartedAgain(t *testing.T) {
	c := mortals(t, time.Millisecond, listens, leavesAtOnce, listens)
	first := c.body.Load()
	ended := make(chan error, 1)
	go func() { ended <- c.Run() }()
	first.kill()
	var second *body
	await(t, "another process listens", func() bool {
		second = c.body.Load()
		return second != nil && second != first && proctest.Runs(second.pid()) && !closed(second.goneC)
	}, &text{})
	c.SetFilter("debug")
	c.Stop(nil)
	if err := <-ended; err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	if proctest.Runs(first.pid()) || proctest.Runs(second.pid()) {
		t.Error("a process is left")
	}
}

// A log filter that is changed while the process starts is one that it is told of.
func TestCompanion_FilterWhileItStarts(t *testing.T) {
	root := logs.New(&text{}, logs.JSON, logs.Filter{})
	t.Cleanup(func() { _ = root.Close() })
	filter, err := logs.ParseFilter("debug")
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := StartCompanion(t.Context(), CompanionOptions{Config: config.Default(), Log: root, Command: func() *exec.Cmd {
		root.SetFilter(filter)
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), companionVar+"="+leavesTold)
		return cmd
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(); err == nil || !strings.Contains(err.Error(), "exited with code 6") {
		t.Errorf("Run = %v, want the end of a process that was told", err)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestCompanion_DiesTooOften(t *testing.T) {
	c := mortals(t, time.Millisecond, leavesLater)
	if err := c.Run(); err == nil || !strings.Contains(err.Error(), "front end: 4 deaths within 1m0s, the last: ") {
		t.Errorf("Run = %v, want four deaths", err)
	}
}

// What is draining, or stopped, when it would be started again, is not.
func TestCompanion_NotStartedAgain(t *testing.T) {
	for name, end := range map[string]func(*Companion){
		"drained": func(c *Companion) { c.Drain(1); c.Stop(nil) },
		"stopped": func(c *Companion) { c.Stop(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			c := mortals(t, time.Hour, leavesLater, staysForever)
			ended := make(chan error, 1)
			go func() { ended <- c.Run() }()
			await(t, "the process is gone", func() bool { return c.body.Load() == nil }, &text{})
			end(c)
			select {
			case err := <-ended:
				if err != nil {
					t.Errorf("Run = %v, want nil", err)
				}
			case <-time.After(patience):
				t.Fatal("Run goes on")
			}
			if c.body.Load() != nil {
				t.Error("a process was started")
			}
		})
	}
}

func TestCompanion_ListensUntilStopped(t *testing.T) {
	for _, role := range []string{listens, staysForever} {
		t.Run(role, func(t *testing.T) {
			c, listening, err := startCompanion(t, role, patience)
			if err != nil {
				t.Fatal(err)
			}
			if listening.Handshake != testHandshake || listening.HTTP != "a host" {
				t.Errorf("listening = %+v, want what it said, with the configuration it was given", listening)
			}
			c.SetFilter("debug")
			c.Stop(nil)
			if err := c.Run(); err != nil {
				t.Errorf("Run = %v, want nil", err)
			}
		})
	}
}

func TestCompanion_NeverListens(t *testing.T) {
	for role, want := range map[string]string{
		neverListens: "not listening: context deadline exceeded",
		leavesAtOnce: "it ended before it listened",
	} {
		t.Run(role, func(t *testing.T) {
			_, _, err := startCompanion(t, role, 500*time.Millisecond)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error = %v, want one with %q", err, want)
			}
		})
	}
}

// An end by itself ends Run, with the reason, unless it was told to drain; then Run waits for Stop.
func TestCompanion_Ends(t *testing.T) {
	c, _, err := startCompanion(t, leavesLater, patience)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(); err == nil || !strings.Contains(err.Error(), "exited with code 4") {
		t.Errorf("Run = %v, want an error with the exit code", err)
	}

	c, _, err = startCompanion(t, drains, patience)
	if err != nil {
		t.Fatal(err)
	}
	gone := c.body.Load().goneC
	c.Drain(1)
	ended := make(chan error, 1)
	go func() { ended <- c.Run() }()
	<-gone
	select {
	case err := <-ended:
		t.Errorf("Run = %v before Stop", err)
	default:
	}
	c.Stop(nil)
	if err := <-ended; err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}
