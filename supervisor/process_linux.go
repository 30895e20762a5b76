package supervisor

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vllm-vcr/ipc"
)

// maxPending is how many frames may be on their way to a worker. It owes one answer at most, so that a handful is the
// most there ever is, even where it is stopped and reads none.
const maxPending = 16

// process is one worker process and our end of the socket to it.
type process struct {
	cmd *exec.Cmd
	// conn must stay referenced: where the garbage collector closes it, the worker leaves.
	conn net.Conn
	// pending are frames for write, which is the only one to write to conn: a worker that is stopped makes it wait, and
	// nobody else.
	pending chan []byte
	leftC   chan struct{} // closed by hangUp

	// What follows belongs to Fleet.Run.
	blame   string // why the supervisor killed it, "" = it did not
	strayed bool   // it answered a call that was not open
	left    bool   // its socket has ended
	// impatient kills it when it stays for too long then.
	impatient *time.Timer
}

// command returns what a worker is started with: this very program, even where its file was replaced or removed since.
func command() *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"vllm-vcr", "worker"}
	return cmd
}

// spawner starts processes, all from one operating system thread that never ends: the parent-death signal of a child
// follows the thread that forked it, not the process.
type spawner struct {
	requests chan spawnRequest
	done     chan struct{} // closed when the thread has ended
}

type spawnRequest struct {
	cmd  *exec.Cmd
	page *os.File
	made chan<- spawned
}

type spawned struct {
	process *process
	err     error
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan spawnRequest), done: make(chan struct{})}
	go s.run()
	return s
}

// run ends with stop, when no child is left that could be hurt by the end of its thread.
func (s *spawner) run() {
	defer close(s.done)
	runtime.LockOSThread()
	shortenSlice()
	for r := range s.requests {
		p, err := start(r.cmd, r.page)
		r.made <- spawned{p, err}
	}
}

func (s *spawner) start(cmd *exec.Cmd, page *os.File) (*process, error) {
	made := make(chan spawned, 1)
	s.requests <- spawnRequest{cmd, page, made}
	got := <-made
	return got.process, got.err
}

func (s *spawner) stop() {
	close(s.requests)
	<-s.done
}

// start gives the child its socket as descriptor 3 and its page, if there is one, as 4. It gets a process group of its own, so that a
// terminal's Ctrl-C reaches the supervisor alone.
func start(cmd *exec.Cmd, page *os.File) (*process, error) {
	conn, childEnd, err := socketPair()
	if err != nil {
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{childEnd}
	if page != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, page)
	}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	err = cmd.Start()
	_ = childEnd.Close() // ours would keep the socket open after the child's death
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("start worker: %w", err)
	}
	return &process{cmd: cmd, conn: conn, pending: make(chan []byte, maxPending), leftC: make(chan struct{})}, nil
}

func socketPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "worker"), os.NewFile(uintptr(fds[1]), "supervisor")
	conn, err := ipc.FileConn(ours)
	_ = ours.Close() // FileConn made a duplicate
	if err != nil {
		_ = theirs.Close()
		return nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	return conn, theirs, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill goes by the handle of a child that was not waited for yet, never by a number that may be somebody else's.
func (p *process) kill() { _ = p.cmd.Process.Kill() } // the only error is that it has ended

// enqueue leaves a frame to write and reports false where too many are on their way already.
func (p *process) enqueue(frame []byte) bool {
	select {
	case p.pending <- frame:
		return true
	default:
		return false
	}
}

// write sends what is pending until the process has left: all at once, so that what belongs together wakes it once.
func (p *process) write() {
	for {
		select {
		case frame := <-p.pending:
			if _, err := p.conn.Write(p.withPending(frame)); err != nil {
				return // its reader sees the end, and what happened to the process
			}
		case <-p.leftC:
			return
		}
	}
}

// withPending returns frame and what is pending behind it.
func (p *process) withPending(frame []byte) []byte {
	for {
		select {
		case next := <-p.pending:
			frame = append(frame, next...)
		default:
			return frame
		}
	}
}

// hangUp closes the socket and ends write. It is called once.
func (p *process) hangUp() {
	_ = p.conn.Close() // whatever is on its way, nobody would answer it
	close(p.leftC)
}

// wait waits for the end of the process and returns how it ended. It is called once.
func (p *process) wait() string {
	p.endGroup()
	_ = p.cmd.Wait() // the state says it all
	return ending(p.cmd.ProcessState)
}

// endGroup waits for the end of the process and kills what it may have started. That is done while nobody has taken its
// exit status: until then its number, which is the group's, is nobody else's.
func (p *process) endGroup() {
	for unix.Waitid(unix.P_PID, p.pid(), nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
		continue
	}
	_ = unix.Kill(-p.pid(), unix.SIGKILL) // the only error is that nothing is left
}

func ending(s *os.ProcessState) string {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return fmt.Sprintf("its process was ended by signal %d (%v)", int(w.Signal()), w.Signal())
	}
	return fmt.Sprintf("its process exited with code %d", s.ExitCode())
}
