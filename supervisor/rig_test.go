package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/logs"
	"vllm-vcr/proctest"
)

// patience is how long a test waits for what must come, before it fails.
const patience = 20 * time.Second

// setup is what a test's fleet looks like.
type setup struct {
	// roles are how the workers behave, in the order in which they are started; the last one serves all that follow.
	roles  []string
	config func(*config.Config)
	timing func(*timing)
	// command replaces the puppets.
	command func() *exec.Cmd
}

// rig is a fleet of puppets.
type rig struct {
	*Fleet
	t       testing.TB
	signals chan os.Signal
	endedC  chan struct{} // closed when Run has returned
	result  error         // of Run, after endedC
	log     *text
	mu      sync.Mutex
	started []*exec.Cmd
}

// text is what was logged.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *text) Write(b []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(b) }
func (l *text) String() string              { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// build makes a fleet of count engines that does not run. When the test is over no process of it may be left.
func build(t testing.TB, count int, s setup) *rig {
	t.Helper()
	cfg := config.Default()
	cfg.EngineCount = uint64(count)
	cfg.StartupTimeout = 60
	if s.config != nil {
		s.config(&cfg)
	}
	r := &rig{t: t, signals: make(chan os.Signal, 2), endedC: make(chan struct{}), log: &text{}}
	filter, err := logs.ParseFilter("info")
	if err != nil {
		t.Fatal(err)
	}
	root := logs.New(r.log, logs.JSON, filter)
	t.Cleanup(func() { _ = root.Close() })
	r.Fleet, err = New(cfg, Options{Signals: r.signals, Log: root, Command: func() *exec.Cmd { return r.command(s) }})
	if err != nil {
		t.Fatal(err)
	}
	r.timing.firstBackoff, r.timing.lastBackoff = 20*time.Millisecond, 160*time.Millisecond
	r.timing.killGrace = time.Second
	if s.timing != nil {
		s.timing(&r.timing)
	}
	return r
}

func (r *rig) command(s setup) *exec.Cmd {
	r.mu.Lock()
	defer r.mu.Unlock()
	cmd := puppetCommand(s.roles[min(len(r.started), len(s.roles)-1)])
	if s.command != nil {
		cmd = s.command()
	}
	r.started = append(r.started, cmd)
	return cmd
}

func puppetCommand(role string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	return cmd
}

// run starts Run, and ends it with the test.
func (r *rig) run() *rig {
	r.t.Helper()
	go func() {
		defer close(r.endedC)
		r.result = r.Run()
	}()
	r.t.Cleanup(func() {
		r.Stop(nil)
		r.end()
		r.checkNoProcess()
	})
	return r
}

// launch makes a fleet and waits until every engine is ready.
func launch(t testing.TB, count int, s setup) *rig {
	t.Helper()
	r := build(t, count, s).run()
	r.await("every engine is ready", func() bool { return r.Health(r.soon()).Status == HealthOK })
	return r
}

// end waits for the end of Run and returns its error.
func (r *rig) end() error {
	r.t.Helper()
	select {
	case <-r.endedC:
		return r.result
	case <-time.After(patience):
		r.t.Fatalf("Run has not ended in %v; log:\n%s", patience, r.log)
		return nil
	}
}

func (r *rig) checkNoProcess() {
	r.t.Helper()
	for _, cmd := range r.started {
		if cmd.Process != nil && proctest.Runs(cmd.Process.Pid) {
			r.t.Errorf("process %d is left after Run", cmd.Process.Pid)
		}
	}
}

// await polls for what must become true. It is the one place where a test waits for a while, and not for an event.
func (r *rig) await(what string, ok func() bool) { r.t.Helper(); await(r.t, what, ok, r.log) }

func await(t testing.TB, what string, ok func() bool, log fmt.Stringer) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not so after %v: %s; log:\n%s", patience, what, log)
		}
	}
}

// awaitLog waits for a line that holds the words: lines are written behind the back of who logs them.
func (r *rig) awaitLog(words string) {
	r.t.Helper()
	r.await("the log says "+words, func() bool { return strings.Contains(r.log.String(), words) })
}

// soon is a context for calls that have no reason to take long.
func (r *rig) soon() context.Context { return r.within(patience) }

func (r *rig) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	r.t.Cleanup(cancel)
	return ctx
}

// call makes one call to one engine.
func (r *rig) call(ctx context.Context, index int, c ipc.Call) (ipc.Answer, error) {
	answers, errs := r.fanOut(ctx, r.members[index:index+1], c)
	return answers[0], errs[0]
}

func (r *rig) poke(index int) {
	_, _ = r.call(r.within(300*time.Millisecond), index, ipc.Call{Op: opPoke})
}

// look returns an engine's status without asking its process anything.
func (r *rig) look(index int) EngineStatus {
	r.t.Helper()
	var s EngineStatus
	if err := r.read(r.soon(), func() { s = r.members[index].status() }); err != nil {
		r.t.Fatalf("fleet cannot be read: %v", err)
	}
	return s
}

func (r *rig) awaitState(index int, state string) EngineStatus {
	r.t.Helper()
	var s EngineStatus
	r.await(fmt.Sprintf("engine %d is %s", index, state), func() bool { s = r.look(index); return s.State == state })
	return s
}

func (r *rig) kill(index int, s syscall.Signal) {
	r.t.Helper()
	if err := syscall.Kill(r.look(index).PID, s); err != nil {
		r.t.Fatalf("kill engine %d: %v", index, err)
	}
}

func itl(ms string) config.Patch { return config.Patch{{Key: "inter_token_latency", Raw: ms}} }

// suspend stops an engine's process, and returns when all of its threads have stopped.
func (r *rig) suspend(index int) {
	r.t.Helper()
	pid := r.look(index).PID
	r.kill(index, syscall.SIGSTOP)
	r.await("the process has stopped", func() bool { return proctest.State(pid) == "T" })
}
