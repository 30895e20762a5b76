package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// stopGrace is how long an engine has to leave after SIGTERM.
const stopGrace = 5 * time.Second

// process is a running engine command, at the head of a process group of its own.
type process struct {
	cmd   *exec.Cmd
	head  member        // the command itself
	log   *os.File      // what it printed; a file without a name, so that nobody has to read it
	doneC chan struct{} // closed when it has ended and been waited for
}

// startProcess starts a command. It is to be stopped, even if it has ended.
func startProcess(argv []string) (*process, error) {
	log, err := os.CreateTemp("", "bench-*.log")
	if err != nil {
		return nil, fmt.Errorf("start engine: %w", err)
	}
	_ = os.Remove(log.Name()) // the open file is enough
	p := &process{cmd: exec.Command(argv[0], argv[1:]...), log: log, doneC: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		_ = log.Close() // the first error is the news
		return nil, fmt.Errorf("start engine: %w", err)
	}
	p.head, _ = readMember(p.pid()) // there until it is waited for, even if it has ended
	go func() {                     // stop waits for it
		defer close(p.doneC)
		_ = p.cmd.Wait() // the state tells all
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// ended is nil while the command runs, and an error afterwards: nobody has stopped it.
func (p *process) ended() error {
	select {
	case <-p.doneC:
		return fmt.Errorf("the engine command ended: %v; it last said:\n%s", p.cmd.ProcessState, p.lastWords())
	default:
		return nil
	}
}

// stop ends the command and all that descends from it. What it printed can't be read any more.
func (p *process) stop() {
	family, _ := processTree(p.pid()) // of a command that has ended there is none
	if len(family) > 0 && family[0] != p.head {
		family = nil // somebody else has got its id
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has ended
	t := time.NewTimer(stopGrace)
	defer t.Stop()
	select {
	case <-p.doneC:
	case <-t.C:
		_ = syscall.Kill(-p.pid(), syscall.SIGKILL) // whoever joined the group meanwhile, too
	}
	for _, m := range family {
		m.kill()
	}
	<-p.doneC
	_ = p.log.Close() // read for the last time
}

// lastWords is the end of what the command and its children have printed.
func (p *process) lastWords() string {
	const most = 4096
	b := make([]byte, most)
	size, err := p.log.Seek(0, io.SeekEnd)
	if err != nil {
		return err.Error()
	}
	n, err := p.log.ReadAt(b, max(0, size-most))
	if err != nil && !errors.Is(err, io.EOF) {
		return err.Error()
	}
	return string(b[:n])
}
