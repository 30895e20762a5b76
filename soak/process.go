package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// process is a command under test.
type process struct {
	name  string
	cmd   *exec.Cmd
	log   *tail
	doneC chan struct{} // closed when it has ended and been waited for
}

// launch starts a command at the head of a process group, so that Ctrl-C reaches this program alone. It is to be killed or stopped.
func launch(name string, argv ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(argv[0], argv[1:]...), log: &tail{}, doneC: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() { // stop and kill wait for it
		defer close(p.doneC)
		_ = p.cmd.Wait() // the state tells all
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// stop asks the process to leave, and wants it to do so by itself.
func (p *process) stop(within time.Duration) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it fails only where the process has ended, which is told below
	select {
	case <-p.doneC:
	case <-time.After(within):
		p.kill()
		return fmt.Errorf("%s was still there %v after SIGTERM", p.name, within)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s ended with code %d (%v); it last said:\n%s", p.name, code, p.cmd.ProcessState, p.log.end())
	}
	return nil
}

// kill ends the process, whose children leave with it, and waits for it.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.doneC
}

// ended is an error once the process has ended, which nobody asked it to.
func (p *process) ended() error {
	select {
	case <-p.doneC:
		return fmt.Errorf("%s ended: %v; it last said:\n%s", p.name, p.cmd.ProcessState, p.log.end())
	default:
		return nil
	}
}

// alarming is what no process may ever say.
var alarming = [][]byte{[]byte("panic: "), []byte("DATA RACE"), []byte("fatal error: ")}

// tail keeps the end of what a process says, and the first alarming words.
type tail struct {
	mu    sync.Mutex
	text  []byte
	alarm string
}

const (
	tailBytes  = 8 << 10
	alarmBytes = 4 << 10
)

// Write never fails, so that whoever logs is never held up.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, words := range alarming {
		if i := bytes.Index(b, words); i >= 0 && t.alarm == "" {
			t.alarm = string(b[i:min(len(b), i+alarmBytes)])
		}
	}
	t.text = append(t.text, b...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}

func (t *tail) end() string { t.mu.Lock(); defer t.mu.Unlock(); return string(t.text) }

func (t *tail) alarmed() string { t.mu.Lock(); defer t.mu.Unlock(); return t.alarm }
