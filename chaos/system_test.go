//go:build chaos

package chaos

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vllm-vcr/proctest"
)

// bare makes a folder that holds nothing but the program, and returns the words that run a command line of it in there: read-only, with
// nothing else of this machine but what script mounts.
func bare(t *testing.T, script string) []string {
	t.Helper()
	needRoot(t)
	root := t.TempDir()
	program, err := os.ReadFile(underTest())
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.WriteFile(root+"/vllm-vcr", program, 0o755), os.Mkdir(root+"/proc", 0o755), os.Mkdir(root+"/dev", 0o755),
		os.WriteFile(root+"/dev/null", nil, 0o644))
	if err != nil {
		t.Fatal(err)
	}
	script = `set -e; root=$1; shift; mount --bind "$root" "$root"; ` + script + ` mount -o remount,bind,ro "$root"; exec chroot "$root" "$@"`
	return []string{"unshare", "--mount", "sh", "-c", script, "sh", root}
}

// F54: a read-only root with nothing in it: no /tmp, no HOME, no /etc, no library.
func TestF54_ReadOnlyRoot(t *testing.T) {
	l := launch{under: bare(t, mountProc+mountNull), binary: "/vllm-vcr"}
	p := l.start(t, serveArgs(2, "--token-source", "echo", "--restart", "on-failure")...)
	p.awaitServing(t)
	if err := p.answeredBy(0, 1); err != nil {
		t.Error(err)
	}
	kill(t, p.engines(t)[0].PID, syscall.SIGKILL)
	p.awaitBack(t, 0, 1)
	p.stop(t)
}

// F54: without what every container has, /proc, where it finds itself, or /dev/null: one clear error.
func TestF54_NoProc(t *testing.T) {
	for missing, script := range map[string]string{"/proc/self/exe": mountNull, "/dev/null": mountProc + `rm "$root/dev/null";`} {
		p := launch{under: bare(t, script), binary: "/vllm-vcr"}.start(t, serveArgs(2)...)
		p.wantExit(t, 1, 5*time.Second)
		if text := p.printed(t); !strings.Contains(text, "error: start worker: ") || !strings.Contains(text, missing+": no such file or directory") {
			t.Errorf("printed %q, want an error about %s", text, missing)
		}
	}
}

// What a container runtime mounts into every root.
const (
	mountProc = `mount -t proc proc "$root/proc"; `
	mountNull = `mount --bind /dev/null "$root/dev/null"; `
)

// F54: a disk that is full, as far as the log is concerned.
func TestF54_DiskFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = full.Close() }() // nothing was ever written
	ports := freePorts(t, 2)
	l := launch{stderr: full, env: []string{"RUST_LOG=trace"}}
	p := l.start(t, "serve", "--engine-count", "2", "--port", ports[0], "--control-address", "127.0.0.1:"+ports[1], "--token-source", "echo")
	p.api, p.control = newClient(t, "127.0.0.1:"+ports[0]), newClient(t, "127.0.0.1:"+ports[1])
	p.awaitHealthy(t)
	if err := p.answeredBy(0, 1); err != nil {
		t.Error(err)
	}
	p.stop(t)
}

// F56: one core, one running thread for each process, 8 engines.
func TestF56_OneCore(t *testing.T) {
	const echoes, streams = 5, 10
	l := launch{under: []string{"taskset", "--cpu-list", "0"}, env: []string{"GOMAXPROCS=1"}}
	p := l.start(t, serveArgs(8, "--token-source", "echo", "--inter-token-latency", "20", "--restart", "on-failure")...)
	p.awaitServing(t)
	var all []*stream
	for e := range 8 {
		for range streams {
			all = append(all, p.begin(e, echoes))
		}
	}
	for i, s := range all {
		if err := s.wait(t).exact(echoes); err != nil {
			t.Errorf("stream %d: %v", i, err)
		}
	}
	t.Logf("gaps between tokens, want 20 ms: %s", spread(all))
	for _, e := range p.engines(t) {
		t.Logf("engine %d: late by at most %v ms p50, %v ms p99", e.Index, e.Lateness.P50, e.Lateness.P99)
		if want := paced(all) / 8; e.Lateness.Outputs < want {
			t.Errorf("engine %d says of %d outputs how late they left, want %d at least", e.Index, e.Lateness.Outputs, want)
		}
	}
	kill(t, p.engines(t)[3].PID, syscall.SIGKILL)
	p.awaitBack(t, 3, 1)
	if err := p.control.want(200, "PATCH", "/config", `{"max_num_seqs": 9}`); err != nil {
		t.Error(err)
	}
	p.stop(t)
}

// paced is how many events had to wait for their time: all but the first of each stream.
func paced(all []*stream) int {
	n := -len(all)
	for _, s := range all {
		n += len(s.events)
	}
	return n
}

// spread tells the middle and the tail of the gaps between events.
func spread(all []*stream) string {
	var gaps []time.Duration
	for _, s := range all {
		for i := 1; i < len(s.events); i++ {
			gaps = append(gaps, s.events[i].Sub(s.events[i-1]))
		}
	}
	slices.Sort(gaps)
	n := len(gaps)
	return fmt.Sprintf("p50 %v, p99 %v, most %v", gaps[n/2].Round(10*time.Microsecond), gaps[n*99/100].Round(10*time.Microsecond), gaps[n-1].Round(10*time.Microsecond))
}

// F57: half a core by the kernel's quota.
func TestF57_Quota(t *testing.T) {
	const echoes = 5
	l := launch{under: halfCore(t), env: []string{"GODEBUG=schedtrace=200"}}
	p := l.start(t, serveArgs(4, "--token-source", "echo", "--inter-token-latency", "20")...)
	p.awaitServing(t)
	var all []*stream
	for e := range 4 {
		for range 10 {
			all = append(all, p.begin(e, echoes))
		}
	}
	for i, s := range all {
		if err := s.wait(t).exact(echoes); err != nil {
			t.Errorf("stream %d: %v", i, err)
		}
	}
	t.Logf("gaps between tokens, want 20 ms: %s", spread(all))
	p.stop(t)
	// Go's rule: a quota below 2 means 2, where the machine has as many. Workers choose 1.
	own := strconv.Itoa(min(2, runtime.NumCPU()))
	seen := map[string]bool{}
	for _, line := range schedLine.FindAllStringSubmatch(p.printed(t), -1) {
		seen[line[1]] = true
	}
	if want := map[string]bool{own: true, "1": true}; !maps.Equal(seen, want) {
		t.Errorf("processes run with a GOMAXPROCS of %v, want %s, and 1 in workers", slices.Sorted(maps.Keys(seen)), own)
	}
}

// schedLine is a whole line of a process's scheduler: those of several, written piece by piece, may run into one another.
var schedLine = regexp.MustCompile(`(?m)^SCHED \d+ms: gomaxprocs=(\d+) idleprocs=\d+ threads=\d+ spinningthreads=\d+ `)

// halfCore makes a cgroup with half a core, of either version, and returns the words that run a command line in it.
func halfCore(t *testing.T) []string {
	t.Helper()
	needRoot(t)
	folder, file, quota := "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "50000"
	if _, err := os.Stat(folder); err != nil {
		folder, file, quota = "/sys/fs/cgroup", "cpu.max", "50000 100000"
	}
	folder = filepath.Join(folder, "vllm-vcr-chaos-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatalf("this row needs a cgroup of its own: %v", err)
	}
	t.Cleanup(func() {
		proctest.Eventually(t, patience, func() error { return os.Remove(folder) }) // once the last process in it has gone
	})
	if err := os.WriteFile(filepath.Join(folder, file), []byte(quota), 0o644); err != nil {
		t.Fatal(err)
	}
	return []string{"sh", "-c", `echo $$ > "$0/cgroup.procs"; exec "$@"`, folder}
}

// F58: everything is stopped, as when a laptop sleeps, and continued a minute later.
func TestF58_Suspend(t *testing.T) {
	const echoes = 40 // 360 tokens, 7.2 s
	p := serve(t, 3, "--token-source", "echo", "--inter-token-latency", "20", "--restart", "on-failure")
	var all []*stream
	for e := range 3 {
		all = append(all, p.begin(e, echoes))
	}
	p.awaitRunning(t, 3)
	family := append(proctest.Children(t, p.pid()), p.pid())
	for _, pid := range family {
		suspend(t, pid)
	}
	<-time.After(suspension(t))
	for _, pid := range family {
		kill(t, pid, syscall.SIGCONT)
	}
	reported := 0
	proctest.Eventually(t, patience, func() error {
		err := p.control.want(200, "GET", "/health", "")
		if err != nil {
			reported++
		}
		return err
	})
	if reported > 1 {
		t.Errorf("health was bad %d times after it, want at most once", reported)
	}
	for i, s := range all {
		if err := s.wait(t).exact(echoes); err != nil {
			t.Errorf("stream %d: %v", i, err)
		}
	}
	for _, e := range p.engines(t) {
		if e.State != "ready" || e.Restarts != 0 || e.Lost != 0 {
			t.Errorf("engine %+v, want it ready as before", e)
		}
	}
	if got, want := p.awaitIdle(t), (stats{Received: 3, Completed: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if strings.Contains(p.printed(t), "engine died") {
		t.Error("a death was reported")
	}
}

// suspension is a minute, or what CHAOS_SUSPEND says.
func suspension(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("CHAOS_SUSPEND")
	if text == "" {
		return sized(time.Minute, 10*time.Second)
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("CHAOS_SUSPEND: %v", err)
	}
	return d
}

// F59: too few descriptors to start with. With fewer than 8 the runtime of Go has not enough for itself.
func TestF59_NoDescriptors(t *testing.T) {
	for _, limit := range []int{8, 10, 12, 16, 20, 30} {
		p := launch{under: []string{"prlimit", "--nofile=" + strconv.Itoa(limit)}}.start(t, serveArgs(20, "--startup-timeout", "3")...)
		p.wantExit(t, 1, 8*time.Second)
		if !strings.Contains(p.printed(t), "too many open files") {
			t.Errorf("with %d descriptors it printed nothing about them:\n%s", limit, p.printed(t))
		}
		if left := orphans(t, p.log); len(left) > 0 {
			t.Errorf("with %d descriptors processes %v are left", limit, left)
		}
	}
}

// F59: too few processes to start with, for a user who is not root.
func TestF59_NoProcesses_Fatal(t *testing.T) {
	needRoot(t)
	under := []string{"setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "prlimit", "--nproc=40"}
	p := launch{under: under}.start(t, serveArgs(40, "--startup-timeout", "3")...)
	select {
	case <-p.exited:
	case <-time.After(10 * time.Second):
		t.Fatal("still runs after 10 s")
	}
	// It is told by fork, or by the runtime of whichever process gets no thread.
	if code := p.cmd.ProcessState.ExitCode(); code != 1 && code != 2 {
		t.Errorf("exit code = %d, want 1, or 2 of the runtime", code)
	}
	if !strings.Contains(p.printed(t), "resource temporarily unavailable") && !strings.Contains(p.printed(t), "failed to create new OS thread") {
		t.Error("printed nothing about the shortage")
	}
	proctest.Eventually(t, 2*time.Second, func() error {
		if left := orphans(t, p.log); len(left) > 0 {
			return fmt.Errorf("processes %v are left", left)
		}
		return nil
	})
}

// F59: a restart for which there are no descriptors is tried again, later and later.
func TestF59_RestartBacksOff(t *testing.T) {
	p := serve(t, 2, "--token-source", "echo", "--restart", "on-failure")
	victim := p.engines(t)[0].PID
	var old unix.Rlimit
	if err := unix.Prlimit(p.pid(), unix.RLIMIT_NOFILE, nil, &old); err != nil {
		t.Fatal(err)
	}
	limit := unix.Rlimit{Cur: uint64(len(proctest.Descriptors(t, p.pid())) - 1), Max: old.Max}
	if err := unix.Prlimit(p.pid(), unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		t.Fatal(err)
	}
	kill(t, victim, syscall.SIGKILL)
	proctest.Eventually(t, patience, func() error { // the connection of these calls is open already
		if e := p.engines(t)[0]; !strings.Contains(e.Reason, "too many open files") {
			return fmt.Errorf("engine 0 is %s (%s), want no descriptors for it", e.State, e.Reason)
		}
		return nil
	})
	if err := unix.Prlimit(p.pid(), unix.RLIMIT_NOFILE, &old, nil); err != nil {
		t.Fatal(err)
	}
	p.awaitBack(t, 0, 2)
	if e := p.engines(t)[1]; e.State != "ready" || e.Restarts != 0 {
		t.Errorf("engine 1 %+v, want it untouched", e)
	}
	proctest.Eventually(t, patience, func() error { return p.answeredBy(0, 1) })
}

// F60: the image, by its own trial: no root, nothing writable, no capabilities, nothing in it but the program.
func TestF60_Image(t *testing.T) {
	needRoot(t)
	out, err := exec.Command(filepath.Join("..", "deploy", "image.sh"), "vllm-vcr:chaos").CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
