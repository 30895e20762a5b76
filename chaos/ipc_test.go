//go:build chaos

package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/proctest"
)

// orphan is a worker of the real binary whose supervisor is the test, which may lie.
type orphan struct {
	cmd    *exec.Cmd
	conn   net.Conn
	stderr bytes.Buffer
}

func startOrphan(t *testing.T) *orphan {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "worker"), os.NewFile(uintptr(fds[1]), "supervisor")
	page, file, err := ipc.NewPage()
	if err != nil {
		t.Fatal(err)
	}
	o := &orphan{cmd: worker()}
	o.cmd.ExtraFiles, o.cmd.Stderr = []*os.File{theirs, file}, &o.stderr
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o.conn, err = net.FileConn(ours)
	_ = errors.Join(ours.Close(), theirs.Close(), file.Close(), page.Close()) // duplicates, or the child's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = o.conn.Close()       // closed already, in some tests
		_ = o.cmd.Process.Kill() // ended, where all is well
	})
	return o
}

// end waits for the end of the worker and returns its exit code.
func (o *orphan) end(t *testing.T, within time.Duration) int {
	t.Helper()
	impatient := time.AfterFunc(within, func() { _ = o.cmd.Process.Kill() })
	defer impatient.Stop()
	_ = o.cmd.Wait() // the state says it all
	return o.cmd.ProcessState.ExitCode()
}

// peak is the most memory that the worker had, in bytes, once it has ended.
func (o *orphan) peak() int64 {
	return o.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
}

func (o *orphan) write(t *testing.T, b []byte) {
	t.Helper()
	if _, err := o.conn.Write(b); err != nil && !errors.Is(err, syscall.EPIPE) { // it may have left before the end of it
		t.Fatal(err)
	}
}

// start is a good first frame, and what a test changes in it.
func start(t *testing.T, change func(*ipc.Start)) []byte {
	t.Helper()
	s := ipc.Start{Magic: ipc.Magic, Version: ipc.Version, Config: config.Default(), LogFilter: "info"}
	s.Config.HandshakeAddress = nowhere(t)
	if change != nil {
		change(&s)
	}
	return frame(t, ipc.KindStart, 0, s)
}

func frame(t *testing.T, kind ipc.Kind, call uint64, body any) []byte {
	t.Helper()
	b, err := ipc.Append(nil, kind, call, body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// F23, F25: what is no frame, or not a supervisor's of this version, ends the worker with a word about it and costs no memory.
func TestF25_WorkerRefuses(t *testing.T) {
	tests := []struct {
		name  string
		first []byte
		want  string
	}{
		{"4 GB claimed", []byte("\xff\xff\xff\xff"), "frame length out of range: 4294967295"},
		{"no length", make([]byte, 64), "frame length out of range: 0"},
		{"another protocol", []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), "frame length out of range"},
		{"another kind", frame(t, ipc.KindCall, 1, ipc.Call{Op: ipc.OpPing}), "frame"},
		{"no JSON", ipc.AppendFrame(nil, ipc.Frame{Kind: ipc.KindStart, Body: []byte("{nonsense")}), "ipc.Start"},
		{"wrong magic", start(t, func(s *ipc.Start) { s.Magic = "vllm-vhs" }), "vllm-vhs"},
		{"another version", start(t, func(s *ipc.Start) { s.Version = 7 }), "version 7"},
	}
	idle := startOrphan(t) // the kernel counts what a process shared with its parent before it became the program
	_ = idle.conn.Close()  // which is how it ends
	idle.end(t, patience)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := startOrphan(t)
			o.write(t, tt.first)
			if code := o.end(t, 2*time.Second); code != 1 {
				t.Errorf("exit code = %d (%v), want 1 within 2 s", code, o.cmd.ProcessState)
			}
			if text := o.stderr.String(); !strings.HasPrefix(text, "error: ") || !strings.Contains(text, tt.want) {
				t.Errorf("printed %q, want an error with %q", text, tt.want)
			}
			if used := o.peak() - idle.peak(); used > 16<<20 {
				t.Errorf("it used %d MB more than one that was told nothing, want at most 16", used>>20)
			}
		})
	}
}

// F24: a frame that is cut, and then the end of the supervisor: the worker leaves.
func TestF24_CutFrameThenEnd(t *testing.T) {
	for _, whole := range [][]byte{start(t, nil), append(start(t, nil), frame(t, ipc.KindCall, 1, ipc.Call{Op: ipc.OpConfig})...)} {
		o := startOrphan(t)
		o.write(t, whole[:len(whole)-5])
		if err := o.conn.Close(); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		o.end(t, patience)
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it left after %v, want at most 1 s", took)
		}
	}
}

// F28: frames that come byte by byte, to a worker that is stopped and continued in the middle of them.
func TestF28_ByteByByte(t *testing.T) {
	o := startOrphan(t)
	all := start(t, nil)
	for call := range uint64(50) {
		all = append(all, frame(t, ipc.KindCall, call+1, ipc.Call{Op: ipc.OpConfig})...)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := range all {
			if _, err := o.conn.Write(all[i : i+1]); err != nil {
				return // its reader says so
			}
			if i%500 == 0 { // an interrupted system call at both ends of it
				_ = o.cmd.Process.Signal(syscall.SIGSTOP)
				_ = o.cmd.Process.Signal(syscall.SIGCONT)
			}
		}
	}()
	var buf []byte
	for call := uint64(1); call <= 50; {
		if err := o.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		var f ipc.Frame
		var err error
		if f, buf, err = ipc.ReadFrame(o.conn, buf); err != nil {
			t.Fatalf("after %d answers: %v", call-1, err)
		}
		if f.Kind != ipc.KindAnswer {
			continue
		}
		var answer ipc.Answer
		if err := f.Decode(&answer); err != nil || f.Call != call || answer.Config == nil {
			t.Fatalf("answer %d to call %d: %+v, %v", f.Call, call, answer, err)
		}
		call++
	}
	<-written
	_ = o.conn.Close() // which is how it ends
	if code := o.end(t, time.Second); code == -1 {
		t.Error("it did not leave within a second of its supervisor")
	}
}

// F29: one of 8 workers is stopped for 3 s.
func TestF29_SlowWorker(t *testing.T) {
	p := serve(t, 8)
	pid := p.engines(t)[5].PID
	suspend(t, pid)
	begun := time.Now()
	continued := time.AfterFunc(3*time.Second, func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	defer continued.Stop()
	all := make(chan error, 1)
	go func() { all <- p.control.want(200, "GET", "/config", "", "max_num_seqs") }()
	for n := 0; n < 20; n++ {
		asked := time.Now()
		for _, path := range []string{"/engines/0/stats", "/engines/7/config", "/health/live"} {
			if err := p.control.want(200, "GET", path, ""); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(asked); took > 500*time.Millisecond {
			t.Errorf("three calls that need no slow engine took %v, want at most 500 ms", took)
		}
	}
	if err := p.control.want(200, "GET", "/engines/5/stats", ""); err != nil {
		t.Errorf("a call that waits its turn at the slow engine: %v", err)
	}
	if err := <-all; err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took < 2900*time.Millisecond || took > 5*time.Second {
		t.Errorf("the fan-out took %v, want the 3 s of its slowest engine, and no sum", took)
	}
	proctest.Eventually(t, patience, func() error { return p.control.want(200, "GET", "/stats", "") })
}

// F30, F31: there is no address at which a stranger could connect to a worker, and none to squat on: sockets between the processes have no
// name, and workers listen nowhere.
func TestF30_NothingToConnectTo(t *testing.T) {
	p := serve(t, 3)
	named := map[string]string{} // by inode
	for _, fields := range table(t, "/proc/net/unix") {
		if len(fields) > 7 {
			named["socket:["+fields[6]+"]"] = fields[7]
		}
	}
	listening := map[string]string{}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		for _, fields := range table(t, file) {
			if fields[3] == "0A" {
				listening["socket:["+fields[9]+"]"] = fields[1]
			}
		}
	}
	for _, pid := range append(proctest.Children(t, p.pid()), p.pid()) {
		var ports []string
		for _, target := range proctest.Descriptors(t, pid) {
			if name := named[target]; name != "" {
				t.Errorf("process %d has a Unix socket with the name %s", pid, name)
			}
			if at := listening[target]; at != "" {
				ports = append(ports, at)
			}
		}
		want := 0
		switch pid {
		case p.pid():
			want = 1 // the control API
		case frontEnd(t, p):
			want = 4 // the OpenAI API, the handshake, one input, one output
		}
		if len(ports) != want {
			t.Errorf("process %d listens at %v, want %d addresses", pid, ports, want)
		}
	}
}

// table is a file of /proc/net without its heading.
func table(t *testing.T, path string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		rows = append(rows, strings.Fields(l))
	}
	return rows
}

// F31: a frontend's socket has a path where one is asked for: what a dead one left there is no obstacle, and a file that is no socket
// is left alone.
func TestF31_StaleSocketFile(t *testing.T) {
	handshake := t.TempDir() + "/handshake"
	args := serveArgs(2, "--handshake-address", "ipc://"+handshake)
	p := launch{}.start(t, args...)
	p.awaitServing(t)
	info, err := os.Stat(handshake)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket's file: %v, %v, want mode 0600", info, err)
	}
	family := proctest.Children(t, p.pid())
	kill(t, p.pid(), syscall.SIGKILL)
	proctest.AwaitGone(t, 2*time.Second, family...)
	if _, err := os.Stat(handshake); err != nil {
		t.Fatalf("nothing is in the way: %v", err)
	}
	again := launch{}.start(t, args...)
	again.awaitServing(t)
	again.stop(t)

	if err := os.WriteFile(handshake, []byte("somebody's work"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := launch{}.start(t, args...)
	refused.wantExit(t, 1, patience)
	if !strings.Contains(refused.printed(t), handshake) {
		t.Errorf("printed no %s", handshake)
	}
	if text, err := os.ReadFile(handshake); err != nil || string(text) != "somebody's work" {
		t.Errorf("the file in the way holds %q, %v", text, err)
	}
	long := launch{}.start(t, playArgs("ipc:///"+strings.Repeat("p", 107), 1)...)
	long.wantExit(t, 2, patience)
	if want := fmt.Sprintf("--handshake-address: %q: want", "ipc:///"+strings.Repeat("p", 107)); !strings.Contains(long.printed(t), want) {
		t.Errorf("printed no %q", want)
	}
}
