//go:build chaos

package chaos

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vllm-vcr/config"
	"vllm-vcr/logs"
	"vllm-vcr/proctest"
	"vllm-vcr/supervisor"
)

// freePorts are ports that were free a moment ago, below the range that the kernel hands out by itself.
func freePorts(t *testing.T, n int) []string {
	t.Helper()
	var ports []string
	for tries := 0; len(ports) < n && tries < 1000; tries++ {
		port := 20000 + rand.IntN(12000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer func() { _ = l.Close() }() // held until all are chosen, so that they differ
		ports = append(ports, strconv.Itoa(port))
	}
	if len(ports) < n {
		t.Fatal("no free port between 20000 and 32000")
	}
	return ports
}

// F12: kill −9 of the supervisor, with a worker stopped and streams running.
func TestF12_SupervisorKilled(t *testing.T) {
	ports := freePorts(t, 3)
	args := []string{"serve", "--engine-count", "4", "--token-source", "echo", "--inter-token-latency", "20",
		"--handshake-address", "tcp://127.0.0.1:" + ports[0], "--port", ports[1], "--control-address", "127.0.0.1:" + ports[2]}
	for range 5 {
		p := launch{}.start(t, args...)
		p.awaitServing(t)
		streams := []*stream{p.begin(0, 1000), p.begin(1, 1000)}
		p.awaitRunning(t, 2)
		suspend(t, p.engines(t)[3].PID)
		family := proctest.Children(t, p.pid())
		if len(family) != 5 {
			t.Errorf("%d children, want four engines and a front end", len(family))
		}
		kill(t, p.pid(), syscall.SIGKILL)
		proctest.AwaitGone(t, 2*time.Second, family...)
		for _, s := range streams {
			if s.wait(t); s.whole {
				t.Error("a stream came to a good end")
			}
		}
	}
	p := launch{}.start(t, args...)
	p.awaitServing(t)
	if err := p.answered(); err != nil {
		t.Error(err)
	}
}

// F13: SIGTERM while idle, of all that serve is made of.
func TestF13_TermIdle(t *testing.T) {
	folder := t.TempDir()
	p := launch{env: []string{"TMPDIR=" + folder, "HOME=" + folder}}.start(t, serveArgs(4, "--handshake-address", "ipc://"+folder+"/handshake")...)
	p.awaitServing(t)
	family := proctest.Children(t, p.pid())
	p.signal(t, syscall.SIGTERM)
	p.wantExit(t, 0, time.Second)
	for _, pid := range family {
		if state := proctest.State(pid); state != "" {
			t.Errorf("process %d is left, state %s", pid, state)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

// F16: SIGTERM at any moment of the start.
func TestF16_TermDuringStart(t *testing.T) {
	for i := range sized(60, 20) {
		p := launch{}.start(t, serveArgs(3)...)
		<-time.After(time.Duration(i) * 40 * time.Millisecond / time.Duration(sized(60, 20)))
		p.signal(t, syscall.SIGTERM)
		select {
		case <-p.exited:
		case <-time.After(2 * time.Second):
			t.Fatalf("try %d: still runs after 2 s", i)
		}
		// Before the program has asked for the signal it ends by it, as any other.
		if status := p.cmd.ProcessState.Sys().(syscall.WaitStatus); status.ExitStatus() != 0 && status.Signal() != syscall.SIGTERM {
			t.Errorf("try %d: %v, want exit code 0 or the signal's end; printed:\n%s", i, p.cmd.ProcessState, p.printed(t))
		}
		if left := orphans(t, p.log); len(left) > 0 {
			t.Errorf("try %d: processes %v are left", i, left)
		}
	}
}

// orphans are the processes that still have this file open as their stderr.
func orphans(t *testing.T, log string) []int {
	t.Helper()
	var found []int
	for _, p := range proctest.All(t) {
		if target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/2", p.PID)); err == nil && target == log {
			found = append(found, p.PID)
		}
	}
	return found
}

// F16: SIGTERM while changes go to all engines.
func TestF16_TermDuringPatches(t *testing.T) {
	p := serve(t, 8)
	var patching sync.WaitGroup
	started := make(chan struct{}, 1)
	for i := range 8 {
		patching.Go(func() {
			for {
				status, _, err := p.control.call("PATCH", "/config", fmt.Sprintf(`{"max_num_seqs": %d}`, 1+i))
				if err != nil || (status != 200 && status != 500 && status != 503) {
					return
				}
				select {
				case started <- struct{}{}:
				default:
				}
			}
		})
	}
	<-started
	p.signal(t, syscall.SIGTERM)
	p.wantExit(t, 0, 2*time.Second)
	patching.Wait()
}

// F16: SIGTERM in the pause before a restart.
func TestF16_TermBeforeRestart(t *testing.T) {
	p := serve(t, 3, "--restart", "on-failure")
	kill(t, p.engines(t)[1].PID, syscall.SIGKILL)
	p.awaitState(t, time.Second, 1, "dead")
	p.signal(t, syscall.SIGTERM)
	p.wantExit(t, 0, time.Second)
	if left := orphans(t, p.log); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// F17: 10,000 goroutines lock their thread and end with it, in a process that has real workers. The fleet is the supervisor's own, in
// this process, since the binary has no such goroutines to end.
func TestF17_ThreadsEnd(t *testing.T) {
	cfg := config.Default()
	cfg.EngineCount, cfg.HandshakeAddress = 4, nowhere(t)
	filter, err := logs.ParseFilter("off")
	if err != nil {
		t.Fatal(err)
	}
	root := logs.New(io.Discard, logs.JSON, filter)
	defer func() { _ = root.Close() }() // it writes nothing
	fleet, err := supervisor.New(cfg, supervisor.Options{Log: root, Command: worker})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- fleet.Run() }()
	before := pidsOf(t, fleet)
	for range 100 {
		var threads sync.WaitGroup
		for range 100 {
			threads.Go(runtime.LockOSThread) // never unlocked: the thread ends with its goroutine
		}
		threads.Wait()
	}
	if _, err := fleet.Stats(t.Context()); err != nil {
		t.Errorf("stats: %v", err)
	}
	if after := pidsOf(t, fleet); !slices.Equal(after, before) {
		t.Errorf("workers %v, want %v", after, before)
	}
	fleet.Stop(nil)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// pidsOf waits for the answer of every worker, and returns their numbers.
func pidsOf(t *testing.T, fleet *supervisor.Fleet) (pids []int) {
	t.Helper()
	proctest.Eventually(t, patience, func() error { _, err := fleet.Config(t.Context()); return err })
	for _, e := range fleet.Engines(t.Context()) {
		pids = append(pids, e.PID)
	}
	return pids
}

// F20: the file that the program was started from is replaced by a stranger's, and a folder of PATH holds another.
func TestF20_BinaryReplaced(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "vllm-vcr")
	program, err := os.ReadFile(underTest())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	l := launch{binary: path, env: []string{"PATH=" + folder}}
	p := l.start(t, serveArgs(2, "--token-source", "echo", "--restart", "on-failure")...)
	p.awaitServing(t)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\ntouch "+folder+"/stranger\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	kill(t, p.engines(t)[0].PID, syscall.SIGKILL)
	p.awaitBack(t, 0, 1)
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.engines(t)[0].PID))
	if want := path + " (deleted)"; err != nil || exe != want {
		t.Errorf("the new worker runs %s, %v, want %s", exe, err, want)
	}
	proctest.Eventually(t, patience, func() error { return p.answeredBy(0, 1) })
	if _, err := os.Stat(folder + "/stranger"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the stranger's file was run: %v", err)
	}
}

// F21: whoever reads the log stops, with everything logged, and comes back.
func TestF21_LogReaderStops(t *testing.T) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	reader, writer := os.NewFile(uintptr(fds[0]), "reader"), os.NewFile(uintptr(fds[1]), "writer")
	ports := freePorts(t, 2)
	l := launch{stderr: writer, env: []string{"RUST_LOG=trace"}}
	p := l.start(t, "serve", "--engine-count", "2", "--port", ports[0], "--control-address", "127.0.0.1:"+ports[1], "--token-source", "echo")
	_ = writer.Close() // the child has its own
	p.api, p.control = newClient(t, "127.0.0.1:"+ports[0]), newClient(t, "127.0.0.1:"+ports[1])
	p.awaitHealthy(t)
	var dropped uint64
	proctest.Eventually(t, patience, func() error {
		begun, s := time.Now(), p.begin(0, 300)
		if err := s.wait(t).exact(300); err != nil {
			return err
		}
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("an answer took %v, want at most 2 s", took)
		}
		if dropped = p.engines(t)[0].LogDropped; dropped == 0 {
			return errors.New("no log line was dropped, so nothing was tried")
		}
		return nil
	})
	t.Logf("engine 0 dropped %d lines", dropped)
	p.signal(t, syscall.SIGTERM)
	read := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(reader) // what there is
		read <- string(text)
	}()
	p.wantExit(t, 0, 5*time.Second)
	if text := <-read; !strings.Contains(text, "every engine is ready") {
		t.Error("the first lines were dropped, want the last ones to be")
	}
	_ = reader.Close() // read to its end
}
