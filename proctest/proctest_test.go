package proctest

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const patience = 20 * time.Second

// family starts a shell with a child of its own, and returns both. They end with the test.
func family(t *testing.T) (cmd *exec.Cmd, child int) {
	t.Helper()
	cmd = exec.Command("sh", "-c", "sleep 100 & wait")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = cmd.Process.Kill(), syscall.Kill(child, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	Eventually(t, patience, func() error {
		if children := Children(t, cmd.Process.Pid); len(children) == 1 {
			child = children[0]
			return nil
		}
		return errors.New("the shell has no child")
	})
	return cmd, child
}

func TestFamily(t *testing.T) {
	cmd, child := family(t)
	if got := Descendants(t, os.Getpid()); !slices.Contains(got, cmd.Process.Pid) || !slices.Contains(got, child) {
		t.Errorf("descendants %d, want %d and %d among them", got, cmd.Process.Pid, child)
	}
	Eventually(t, patience, func() error { // the child is a copy of the shell until it becomes another program
		if line := Status(t, child).Name; line != "sleep" {
			return errors.New(line)
		}
		return nil
	})
	if got := ChildNamed(t, cmd.Process.Pid, "sleep 100"); got != child {
		t.Errorf("child %d, want %d", got, child)
	}
}

// A process runs until it has ended; that nobody has waited for it makes no difference.
func TestRuns(t *testing.T) {
	cmd, child := family(t)
	pid := cmd.Process.Pid
	if !Runs(pid) || !Runs(child) {
		t.Errorf("states %q and %q, want them to run", State(pid), State(child))
	}
	_ = cmd.Process.Kill()
	AwaitGone(t, patience, pid)
	if state := State(pid); state != "Z" {
		t.Errorf("state %q of a process that was killed and not waited for, want Z", state)
	}
	_ = cmd.Wait()
	if state := State(pid); state != "" {
		t.Errorf("state %q of a process that was waited for, want none", state)
	}
}

func TestDescriptors(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/open")
	if err != nil {
		t.Fatal(err)
	}
	if got := Descriptors(t, os.Getpid()); !slices.Contains(got, f.Name()) {
		t.Errorf("descriptors %q, want %s among them", got, f.Name())
	}
	_ = f.Close()
	if got := Descriptors(t, os.Getpid()); strings.Contains(strings.Join(got, " "), f.Name()) {
		t.Errorf("descriptors %q, want no %s among them", got, f.Name())
	}
}

func TestCPUTime(t *testing.T) {
	before := CPUTime(os.Getpid())
	for deadline := time.Now().Add(patience); CPUTime(os.Getpid(), 1<<30) == before; {
		if time.Now().After(deadline) {
			t.Fatal("work took no time")
		}
	}
}
