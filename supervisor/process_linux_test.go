package supervisor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
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
)

// ownCommand has a supervisor of the tests start its workers as the real one does, from its own executable.
const ownCommand = "own command"

// playSupervisor is the life of a whole supervisor, with the roles of its workers between commas. It prints the pids of its
// workers whenever all are ready, and whenever they are others.
func playSupervisor(spec string) int {
	roles := strings.Split(spec, ",")
	cfg := config.Default()
	cfg.EngineCount, cfg.Restart = uint64(len(roles)), config.RestartOnFailure
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	filter, _ := logs.ParseFilter("off")
	o := Options{Signals: signals, Log: logs.New(os.Stderr, logs.JSON, filter)}
	if roles[0] != ownCommand {
		n := 0
		o.Command = func() *exec.Cmd { n++; return puppetCommand(roles[(n-1)%len(roles)]) }
	}
	f, err := New(cfg, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	f.timing.firstBackoff = 20 * time.Millisecond
	f.timing.silence = time.Hour // on a slow machine a ping would find the deaf one frozen
	go printPIDs(f)
	err = f.Run()
	var killed *SignalError
	switch {
	case errors.As(err, &killed):
		return killed.ExitCode()
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func printPIDs(f *Fleet) {
	last := ""
	for range time.Tick(10 * time.Millisecond) {
		line := "workers"
		for _, e := range f.Engines(context.Background()) {
			if e.State != StateReady {
				line = last
				break
			}
			line += fmt.Sprintf(" %d", e.PID)
		}
		if line != last && line != "workers" {
			last = line
			fmt.Println(line)
		}
	}
}

// supervisorProcess is a supervisor in a process of its own.
type supervisorProcess struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string // closed at the end of its output
}

func startSupervisor(t *testing.T, path string, roles ...string) *supervisorProcess {
	t.Helper()
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), fleetVar+"="+strings.Join(roles, ","))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &supervisorProcess{t, cmd, make(chan string)}
	go func() {
		defer close(s.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			s.lines <- scan.Text()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		for range s.lines {
			continue
		}
		_ = cmd.Wait()
	})
	return s
}

// workers waits for the next report of the workers' pids.
func (s *supervisorProcess) workers() []int {
	s.t.Helper()
	select {
	case line := <-s.lines:
		var pids []int
		for _, word := range strings.Fields(line)[1:] {
			pid, err := strconv.Atoi(word)
			if err != nil {
				s.t.Fatalf("supervisor says %q, want pids", line)
			}
			pids = append(pids, pid)
		}
		return pids
	case <-time.After(patience):
		s.t.Fatal("the workers are not ready")
		return nil
	}
}

// kill −9 of the supervisor leaves no worker, be it busy, stopped or unwilling, and the next start works at once.
func TestProcess_SupervisorKilled(t *testing.T) {
	for range 10 {
		s := startSupervisor(t, "/proc/self/exe", good, stubborn, deafReady, good)
		pids := s.workers()
		if err := syscall.Kill(pids[3], syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		await(t, "the worker has stopped", func() bool { return proctest.State(pids[3]) == "T" }, &text{})
		if err := s.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		proctest.AwaitGone(t, 2*time.Second, pids...)
	}
}

// The file a supervisor was started from may be replaced or removed: what it starts is still itself.
func TestProcess_ExecutableRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vllm-vcr")
	copyExecutable(t, path)
	s := startSupervisor(t, path, ownCommand)
	before := s.workers()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 9\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(before[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	after := s.workers()
	if after[0] == before[0] {
		t.Fatalf("worker is still %d, want another one", after[0])
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", after[0]))
	if err != nil || exe != path+" (deleted)" {
		t.Errorf("the new worker runs %s, %v, want %s (deleted)", exe, err, path)
	}
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", after[0]))
	if err != nil || string(args) != "vllm-vcr\x00worker\x00" {
		t.Errorf("the new worker's command line is %q, %v, want vllm-vcr worker and nothing else", args, err)
	}
}

func copyExecutable(t *testing.T, path string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o755); err != nil {
		t.Fatal(err)
	}
}

// SIGTERM drains; another signal ends at once, with the shell's code for it.
func TestProcess_ExitCodes(t *testing.T) {
	for _, c := range []struct {
		name    string
		roles   []string
		signals []syscall.Signal
		want    int
	}{
		{"SIGTERM", []string{good, good}, []syscall.Signal{syscall.SIGTERM}, 0},
		{"SIGINT", []string{good}, []syscall.Signal{syscall.SIGINT}, 0},
		{"SIGTERM twice", []string{good, stubborn}, []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM}, 143},
		{"SIGINT, SIGTERM", []string{good, stubborn}, []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, 143},
		{"SIGTERM, SIGINT", []string{good, stubborn}, []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}, 130},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startSupervisor(t, "/proc/self/exe", c.roles...)
			pids := s.workers()
			begun := time.Now()
			for _, sig := range c.signals {
				if err := s.cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				// The next signal must find that this one was taken: two equal ones at once may be one.
				await(t, "the fleet drains", func() bool { return !proctest.Runs(pids[0]) }, &text{})
			}
			for range s.lines {
				continue
			}
			_ = s.cmd.Wait()
			if got := s.cmd.ProcessState.ExitCode(); got != c.want {
				t.Errorf("exit code = %d, want %d", got, c.want)
			}
			if took := time.Since(begun); took > 3*time.Second {
				t.Errorf("it took %v, want at most 3 s", took)
			}
			proctest.AwaitGone(t, time.Second, pids...)
		})
	}
}

// A worker's own children end with it, by a number that is still the group's.
func TestProcess_GrandchildEndsWithWorker(t *testing.T) {
	for _, end := range []string{"kill", "drain"} {
		t.Run(end, func(t *testing.T) {
			r := launch(t, 1, setup{roles: []string{parent}})
			pid := int(r.look(0).Dropped)
			if !proctest.Runs(pid) {
				t.Fatalf("grandchild %d does not run", pid)
			}
			if end == "kill" {
				r.kill(0, syscall.SIGKILL)
			} else {
				r.Stop(nil)
			}
			r.await("the grandchild is gone", func() bool { return !proctest.Runs(pid) })
		})
	}
}

// Threads that end do no harm to workers: their parent-death signal hangs on the spawner's thread.
func TestProcess_ThreadsMayEnd(t *testing.T) {
	r := launch(t, 2, setup{roles: []string{good}})
	for range 50 {
		var threads sync.WaitGroup
		for range 8 {
			threads.Go(runtime.LockOSThread) // and never unlocked: the thread ends with its goroutine
		}
		threads.Wait()
		if _, err := r.Stats(r.soon()); err != nil {
			t.Fatalf("Stats after threads have ended: %v", err)
		}
	}
}

// A worker has its own socket and no other worker's, and nothing else of ours stays open in it.
func TestProcess_WorkerInheritsNothingElse(t *testing.T) {
	r := launch(t, 3, setup{roles: []string{good}})
	given := inheritable(t)
	for i := range 3 {
		var sockets, others []string
		for _, target := range proctest.Descriptors(t, r.look(i).PID) {
			switch {
			case strings.HasPrefix(target, "socket:"):
				sockets = append(sockets, target)
			case !strings.HasPrefix(target, "anon_inode:") && !strings.HasPrefix(target, "/sys/fs/cgroup") && !given[target]:
				others = append(others, target)
			}
		}
		if len(sockets) != 1 {
			t.Errorf("engine %d holds the sockets %v, want one", i, sockets)
		}
		if len(others) > 0 {
			t.Errorf("engine %d holds %v, want nothing of the supervisor's", i, others)
		}
	}
}

// inheritable is what every child of this process gets, because whoever started us left it open for all.
func inheritable(t *testing.T) map[string]bool {
	t.Helper()
	given := map[string]bool{os.DevNull: true}
	for fd := range 256 {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			target, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
			given[target] = true
		}
	}
	return given
}

// A fleet that has ended, in whatever way, leaves our process as it was.
func TestProcess_NothingLeaks(t *testing.T) {
	cycle := func() {
		r := launch(t, 3, setup{roles: []string{good, good, good, diesAtOnce, good}, config: onFailure})
		r.kill(1, syscall.SIGKILL)
		r.await("engine 1 has been started twice more", func() bool { s := r.look(1); return s.Restarts == 2 && s.State == StateReady })
		r.Stop(nil)
		if err := r.end(); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	}
	cycle() // the runtime opens what it keeps
	before := proctest.Descriptors(t, os.Getpid())
	for range 3 {
		cycle()
	}
	if after := proctest.Descriptors(t, os.Getpid()); len(after) != len(before) {
		t.Errorf("open are %q, want as many as before: %q", after, before)
	}
}

// Without descriptors there is no new worker, and no harm done: it is tried again.
func TestProcess_NoDescriptors(t *testing.T) {
	r := launch(t, 2, setup{roles: []string{good}, config: onFailure})
	files := exhaust(t)
	r.kill(0, syscall.SIGKILL)
	r.await("a start was tried in vain", func() bool { return strings.Contains(r.look(0).Reason, "too many open files") })
	for _, f := range files {
		_ = f.Close()
	}
	r.awaitState(0, StateReady)
	if s := r.look(1); s.State != StateReady || s.Restarts != 0 {
		t.Errorf("engine 1 = %+v, want it untouched", s)
	}
}

// exhaust lowers the limit of open files and opens what is left of it. The caller closes the files.
func exhaust(t *testing.T) []*os.File {
	t.Helper()
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 100, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old) })
	var files []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return files
		}
		files = append(files, f)
	}
}

// A process that was waited for is never signalled again.
func TestProcess_KillAfterWait(t *testing.T) {
	s := newSpawner()
	defer s.stop()
	page, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	p, err := s.start(puppetCommand(diesAtOnce), page)
	if err != nil {
		t.Fatal(err)
	}
	defer p.hangUp()
	if got, want := p.wait(), "its process exited with code 3"; got != want {
		t.Errorf("wait = %q, want %q", got, want)
	}
	p.kill()
	if err := p.cmd.Process.Signal(syscall.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal after wait: %v, want %v", err, os.ErrProcessDone)
	}
}

func onFailure(cfg *config.Config) { cfg.Restart = config.RestartOnFailure }

// Every thread of a worker has the slice of the thread that started it, and that is workerSlice where the kernel knows such
// a thing.
func TestProcess_Slice(t *testing.T) {
	s := newSpawner()
	defer s.stop()
	cmd := exec.Command("sleep", "60")
	p, err := s.start(cmd, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		p.kill()
		p.hangUp()
		p.wait()
	}()
	got, err := unix.SchedGetAttr(p.pid(), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := make(chan uint64, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine, and its slice with it
		shortenSlice()
		attr, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Error(err)
		}
		want <- attr.Runtime
	}()
	if want := <-want; got.Runtime != want {
		t.Errorf("slice of a worker = %v, want %v", time.Duration(got.Runtime), time.Duration(want))
	}
	if err := kernelKnowsSlices(); err == nil && got.Runtime != uint64(workerSlice) {
		t.Errorf("slice of a worker = %v on a kernel that knows slices, want %v", time.Duration(got.Runtime), workerSlice)
	}
}

func kernelKnowsSlices() error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		return err
	}
	if major < 6 || major == 6 && minor < 12 {
		return errors.ErrUnsupported
	}
	return nil
}
