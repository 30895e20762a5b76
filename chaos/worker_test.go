//go:build chaos

package chaos

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vllm-vcr/proctest"
)

// wantDead returns nil if the control API says that an engine is gone, and all calls that need it say so.
func (p *program) wantDead(index int, words ...string) error {
	name := append([]string{fmt.Sprintf("engine %d is gone", index)}, words...)
	return errors.Join(
		p.control.want(500, "GET", "/config", "", name...),
		p.control.want(500, "GET", "/stats", "", name...),
		p.control.want(500, "PATCH", "/config", `{"max_num_seqs": 9}`, name...),
		p.control.want(503, "GET", "/health", "", "degraded", fmt.Sprintf(`"index":%d`, index)),
	)
}

// F1: kill −9 of an idle worker of 8.
func TestF1_IdleWorkerKilled(t *testing.T) {
	const victim = 3
	p := serve(t, 8, "--token-source", "echo")
	pid := p.engines(t)[victim].PID
	kill(t, pid, syscall.SIGKILL)
	begun := time.Now()
	e := p.awaitState(t, time.Second, victim, "dead")
	if want := "its process was ended by signal 9 (killed)"; e.Reason != want {
		t.Errorf("reason %q, want %q", e.Reason, want)
	}
	if err := p.wantDead(victim, "signal 9"); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("all of it was told after %v, want at most 1 s", took)
	}
	if left := zombies(t, p.pid()); len(left) > 0 {
		t.Errorf("zombies %v, want none", left)
	}
	if err := p.answeredBy(0, 1, 2, 4, 5, 6, 7); err != nil {
		t.Error(err)
	}
}

// F2: kill −9 with 50 streams in flight.
func TestF2_KilledUnderStreams(t *testing.T) {
	const victim, echoes = 1, 15
	p := serve(t, 2, "--token-source", "echo", "--inter-token-latency", "20")
	var severed, untouched []*stream
	for range 50 {
		severed, untouched = append(severed, p.begin(victim, 100)), append(untouched, p.begin(0, echoes))
	}
	p.awaitRunning(t, 100)
	kill(t, p.engines(t)[victim].PID, syscall.SIGKILL)
	killed := time.Now()
	for i, s := range severed {
		if err := s.wait(t).severed(); err != nil {
			t.Errorf("stream %d of the dead engine: %v", i, err)
		}
		if took := s.ended.Sub(killed); took > time.Second {
			t.Errorf("stream %d of the dead engine ended after %v, want at most 1 s", i, took)
		}
	}
	for i, s := range untouched {
		if err := s.wait(t).exact(echoes); err != nil {
			t.Errorf("stream %d of the living engine: %v", i, err)
		}
	}
	if e := p.engines(t)[victim]; e.Lost != 50 || e.Stats.closed() != nil {
		t.Errorf("lost %d, %+v, want 50 and closed books", e.Lost, e.Stats)
	}
}

// F3: kill −STOP.
func TestF3_Stopped(t *testing.T) {
	const bound = 2 * time.Second
	p := serve(t, 4, "--token-source", "echo", "--inter-token-latency", "10", "--control-timeout", "2")
	streams := []*stream{p.begin(1, 10), p.begin(1, 10)}
	p.awaitRunning(t, 2)
	pid := p.engines(t)[1].PID
	suspend(t, pid)
	for _, path := range []string{"/config", "/stats", "/engines/1/stats", "/config"} {
		begun := time.Now()
		if err := p.control.want(504, "GET", path, "", "engine 1 does not answer"); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > bound+500*time.Millisecond { // to notice, to write and to read on a busy machine
			t.Errorf("GET %s took %v, want at most %v", path, took, bound)
		}
	}
	p.awaitState(t, patience, 1, "frozen")
	kill(t, pid, syscall.SIGCONT)
	for _, s := range streams {
		if err := s.wait(t).exact(10); err != nil {
			t.Error(err)
		}
	}
	proctest.Eventually(t, patience, func() error { return p.control.want(200, "GET", "/health", "") })
	if got, want := p.awaitIdle(t), (stats{Received: 2, Completed: 2}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
}

// F4: a fatal error of the Go runtime in a worker, which is what a panic that nobody caught is. The signal makes the runtime do it.
func TestF4_Fatal(t *testing.T) {
	p := serve(t, 3, "--token-source", "echo")
	pid := p.engines(t)[1].PID
	kill(t, pid, syscall.SIGABRT)
	e := p.awaitState(t, time.Second, 1, "dead")
	if !strings.HasPrefix(e.Reason, "its process exited with code 2") {
		t.Errorf("reason %q, want exit code 2", e.Reason)
	}
	if err := errors.Join(p.wantDead(1, "code 2"), p.answeredBy(0, 2)); err != nil {
		t.Error(err)
	}
	if state := proctest.State(pid); state != "" {
		t.Errorf("process %d is left in state %s", pid, state)
	}
	proctest.Eventually(t, time.Second, func() error {
		if n := strings.Count(p.printed(t), "SIGABRT: abort"); n != 1 {
			return fmt.Errorf("the stack is in the log %d times, want once", n)
		}
		return nil
	})
	if !strings.Contains(p.printed(t), "\ngoroutine ") {
		t.Error("no stack of a goroutine in the log")
	}
}

// F6: a worker that leaves by itself with code 0, here at a SIGTERM of its own.
func TestF6_ExitsWithZero(t *testing.T) {
	p := serve(t, 2, "--token-source", "echo")
	kill(t, p.engines(t)[0].PID, syscall.SIGTERM)
	e := p.awaitState(t, time.Second, 0, "dead")
	if want := "its process exited with code 0"; e.Reason != want {
		t.Errorf("reason %q, want %q", e.Reason, want)
	}
	if err := errors.Join(p.wantDead(0), p.answeredBy(1)); err != nil {
		t.Error(err)
	}
}

// F6: and one that is to be restarted comes back.
func TestF6_ExitsWithZero_Restart(t *testing.T) {
	p := serve(t, 2, "--token-source", "echo", "--restart", "on-failure")
	kill(t, p.engines(t)[0].PID, syscall.SIGTERM)
	p.awaitBack(t, 0, 1)
	proctest.Eventually(t, patience, func() error { return p.answeredBy(0, 1) })
}

// F7: a worker that dies in its handshake, in the hands of a frontend that has taken its HELLO.
func TestF7_DiesInHandshake(t *testing.T) {
	r := newRude(t)
	p := launch{}.start(t, playArgs(r.handshake.Address(), 4, "--restart", "on-failure")...)
	p.awaitControl(t)
	for range 4 {
		r.hello()
	}
	family := proctest.Children(t, p.pid())
	kill(t, p.engines(t)[2].PID, syscall.SIGKILL)
	p.wantExit(t, 1, 2*time.Second)
	proctest.AwaitGone(t, time.Second, family...)
	if want := "error: engine 2 died before it was ready: its process was ended by signal 9 (killed)"; !strings.Contains(p.printed(t), want) {
		t.Errorf("printed no %q", want)
	}
}

// F8: a worker that is never ready, since its frontend takes the HELLO and says nothing.
func TestF8_NeverReady(t *testing.T) {
	r := newRude(t)
	p := launch{}.start(t, playArgs(r.handshake.Address(), 3, "--startup-timeout", "2")...)
	for range 3 {
		r.hello()
	}
	family := proctest.Children(t, p.pid())
	p.wantExit(t, 1, 4*time.Second)
	proctest.AwaitGone(t, time.Second, family...)
	if want := "error: not ready after 2 s: engine 0, engine 1, engine 2"; !strings.Contains(p.printed(t), want) {
		t.Errorf("printed no %q", want)
	}
}

// F9: a worker that gets no more memory, with more and more long prompts to keep.
func TestF9_OutOfMemory_Fatal(t *testing.T) {
	p := serve(t, 3, "--token-source", "echo", "--time-to-first-token", "60000")
	pid := p.engines(t)[1].PID
	limit := unix.Rlimit{Cur: proctest.Status(t, pid).VmSize + 8<<20, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(pid, unix.RLIMIT_AS, &limit, nil); err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"prompt": [%s1], "max_tokens": 1}`, strings.Repeat("100000,", 30_000))
	var asking sync.WaitGroup
	defer asking.Wait()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); p.engines(t)[1].State == "ready" && time.Now().Before(end); <-tick.C {
		asking.Go(func() { _, _, _ = p.api.call("POST", "/v1/completions", body, "X-Data-Parallel-Rank", "1") }) // an error at last
	}
	e := p.awaitState(t, time.Second, 1, "dead")
	if !strings.Contains(e.Reason, "exited with code 2") && !strings.Contains(e.Reason, "signal 9") {
		t.Errorf("reason %q, want exit code 2 or signal 9", e.Reason)
	}
	if err := p.wantDead(1); err != nil {
		t.Error(err)
	}
	p.control.must(t, "PATCH", "/engines/0/config", `{"time_to_first_token": 0}`)
	if err := p.answeredBy(0); err != nil {
		t.Error(err)
	}
}

// F10: a worker that dies whenever it was started.
func TestF10_CrashLoop(t *testing.T) {
	p := serve(t, 2, "--token-source", "echo", "--restart", "on-failure")
	used, lines, begun := proctest.CPUTime(p.pid()), strings.Count(p.printed(t), "\n"), time.Now()
	deaths := p.killUntilFailed(t, 1)
	took := time.Since(begun)
	if len(deaths) != 5 {
		t.Errorf("failed after %d deaths, want 5", len(deaths))
	}
	for i := 1; i < len(deaths); i++ {
		if got, least := deaths[i].Sub(deaths[i-1]), time.Second<<(i-1); got < least {
			t.Errorf("start %d came after %v, want at least %v", i+1, got, least)
		}
	}
	if share := (proctest.CPUTime(p.pid()) - used).Seconds() / took.Seconds(); share > 0.05 {
		t.Errorf("the supervisor used %.1f %% of a core, want at most 5", 100*share)
	}
	if n := strings.Count(p.printed(t), "\n") - lines; float64(n) > 10*took.Seconds() {
		t.Errorf("%d log lines in %v, want at most 10 a second", n, took)
	}
	if err := errors.Join(p.wantDead(1, "5 deaths within 1m0s"), p.answeredBy(0)); err != nil {
		t.Error(err)
	}
}

// killUntilFailed kills an engine whenever it is there, and returns the times of its deaths. It looks ten times a second, so that looking
// costs the supervisor nothing that matters.
func (p *program) killUntilFailed(t *testing.T, index int) []time.Time {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var deaths []time.Time
	for end := time.Now().Add(40 * time.Second); time.Now().Before(end); <-tick.C {
		e := p.engines(t)[index]
		if e.State == "failed" {
			return deaths
		}
		if e.PID != 0 && e.Restarts == len(deaths) {
			kill(t, e.PID, syscall.SIGKILL)
			deaths = append(deaths, time.Now())
		}
	}
	t.Fatalf("engine %d has not failed after %d deaths", index, len(deaths))
	return nil
}

// F11: a second engine dies while the first is being started again.
func TestF11_SecondDeath(t *testing.T) {
	p := serve(t, 4, "--token-source", "echo", "--restart", "on-failure")
	first, second := p.engines(t)[2].PID, p.engines(t)[0].PID
	kill(t, first, syscall.SIGKILL)
	p.awaitState(t, time.Second, 2, "dead")
	kill(t, second, syscall.SIGKILL)
	p.awaitState(t, time.Second, 0, "dead")
	if err := p.control.want(500, "GET", "/config", "", "engine 0 is gone"); err != nil {
		t.Errorf("of two dead engines not the lower index is told: %v", err)
	}
	p.awaitBack(t, 0, 1)
	p.awaitBack(t, 2, 1)
	for i, e := range p.engines(t) {
		if e.Index != i || e.State != "ready" {
			t.Errorf("place %d holds engine %+v, want it ready in its own place", i, e)
		}
	}
	if err := p.control.want(200, "PATCH", "/config", `{"max_num_seqs": 9}`); err != nil {
		t.Error(err)
	}
	proctest.Eventually(t, patience, func() error { return p.answeredBy(0, 1, 2, 3) })
}
