//go:build chaos

package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vllm-vcr/proctest"
)

// Engines come to one front end and leave it a thousand times: it has the same descriptors in the end, the folder the same files, and no
// other process is left.
func TestCycles_StartStop(t *testing.T) {
	folder := t.TempDir()
	handshake := "ipc://" + filepath.Join(folder, "handshake")
	l := launch{env: []string{"TMPDIR=" + folder, "HOME=" + folder}}
	front := l.start(t, "frontend", "--handshake-address", handshake, "--engine-count", "2", "--port", "0")
	front.api = newClient(t, fmt.Sprint(front.awaitLog(t, "OpenAI API listening")["address"]))
	run := func(times int) {
		for range times {
			p := l.start(t, playArgs(handshake, 2, "--token-source", "echo", "--vocab-size", "100256")...)
			proctest.Eventually(t, patience, func() error { return front.api.want(200, "GET", "/health", "") })
			if err := front.answered(); err != nil {
				t.Fatal(err)
			}
			p.stop(t)
			proctest.Eventually(t, patience, func() error { return front.api.want(503, "GET", "/health", "") })
		}
	}
	run(20) // the runtime opens what it keeps
	before := takeStock(t, front.pid(), folder)
	memory, _ := resident(t, front.pid())
	run(sized(1000, 60))
	if diff := cmp.Diff(before, takeStock(t, front.pid(), folder)); diff != "" {
		t.Errorf("what there is (-before +after):\n%s", diff)
	}
	if after, _ := resident(t, front.pid()); after > memory+memory/2 {
		t.Errorf("the front end has %d MB, want about the %d from before", after>>20, memory>>20)
	}
}

// stock is what processes may leave behind.
type stock struct {
	Descriptors, Files, Shared []string
	Processes                  []int
}

func takeStock(t *testing.T, pid int, folder string) stock {
	t.Helper()
	s := stock{Descriptors: kinds(proctest.Descriptors(t, pid)), Files: list(t, folder), Shared: list(t, "/dev/shm")}
	for _, other := range proctest.All(t) {
		if exe, err := other.Executable(); err == nil && exe == underTest() {
			s.Processes = append(s.Processes, other.PID)
		}
	}
	return s
}

// kinds are what descriptors lead to, without the numbers that differ from one to the next.
func kinds(targets []string) []string {
	for i, target := range targets {
		var kind string
		var number int
		if n, _ := fmt.Sscanf(target, "%6s:[%d]", &kind, &number); n == 2 {
			targets[i] = kind
		}
	}
	slices.Sort(targets)
	return targets
}

func list(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
