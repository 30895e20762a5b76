package supervisor

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
)

func TestRestart_Never(t *testing.T) {
	t.Parallel()
	r := launch(t, 2, setup{roles: []string{good}})
	r.kill(0, syscall.SIGKILL)
	r.kill(1, syscall.SIGKILL)
	r.awaitState(0, StateDead)
	r.awaitState(1, StateDead)
	if _, err := r.Config(r.soon()); err == nil {
		t.Error("Config of a dead fleet: no error")
	}
	r.Stop(nil)
	if err := r.end(); err != nil {
		t.Errorf("Run = %v, want nil: the last death is reported, not fatal", err)
	}
	if len(r.started) != 2 {
		t.Errorf("%d processes were started, want 2", len(r.started))
	}
}

// What an engine had counted goes on in its next process, and what it had not ended is failed and lost.
func TestRestart_LedgerGoesOn(t *testing.T) {
	t.Parallel()
	r := launch(t, 2, setup{roles: []string{good}, config: onFailure})
	arrive(t, r, 0, 10)
	if _, err := r.call(r.soon(), 0, ipc.Call{Op: opFinish, Timeout: 6}); err != nil {
		t.Fatal(err)
	}
	r.kill(0, syscall.SIGKILL)
	r.await("engine 0 is back", func() bool { s := r.look(0); return s.State == StateReady && s.Restarts == 1 })
	arrive(t, r, 0, 1)
	s := r.look(0)
	if diff := cmp.Diff(ipc.Stats{Received: 11, Completed: 6, Failed: 4, Running: 1}, s.Stats); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
	if s.Lost != 4 {
		t.Errorf("lost = %d, want 4", s.Lost)
	}
}

// A worker that dies again and again is started with longer and longer pauses, and then no more.
func TestRestart_CrashLoop(t *testing.T) {
	t.Parallel()
	r := launch(t, 2, setup{roles: []string{good, good, diesAtOnce}, config: onFailure})
	begun := time.Now()
	r.kill(1, syscall.SIGKILL)
	s := r.awaitState(1, StateFailed)
	if want := "5 deaths within 1m0s, the last: its process exited with code 3"; s.Reason != want {
		t.Errorf("reason %q, want %q", s.Reason, want)
	}
	if s.Restarts != 4 {
		t.Errorf("%d restarts, want 4", s.Restarts)
	}
	if took, least := time.Since(begun), (20+40+80+160)*time.Millisecond; took < least {
		t.Errorf("four restarts took %v, want pauses of at least %v", took, least)
	}
	_, err := r.Config(r.soon())
	wantGone(t, "Config", err, 1, "5 deaths within 1m0s")
	if h := r.Health(r.soon()); h.Status != HealthDegraded || len(h.Engines) != 1 || h.Engines[0].State != StateFailed {
		t.Errorf("health = %+v, want degraded by a failed engine", h)
	}
	if lines := strings.Count(r.log.String(), "\n"); lines > 20 {
		t.Errorf("%d log lines, want at most 20", lines)
	}
}

// A worker of another version is not started again: it will not get better.
func TestRestart_WrongVersion(t *testing.T) {
	t.Parallel()
	r := launch(t, 1, setup{roles: []string{good, wrongVersion}, config: onFailure})
	r.kill(0, syscall.SIGKILL)
	s := r.awaitState(0, StateFailed)
	if s.Restarts != 1 || !strings.Contains(s.Reason, "the worker speaks version 7") {
		t.Errorf("%d restarts, reason %q, want 1 and the version", s.Restarts, s.Reason)
	}
}

func TestRestart_Pauses(t *testing.T) {
	at := time.Now()
	for _, c := range []struct {
		name    string
		backoff time.Duration
		lived   time.Duration
		want    time.Duration
	}{
		{"first death", 0, time.Second, time.Second},
		{"second", time.Second, 0, 2 * time.Second},
		{"after a whole minute alive", 8 * time.Second, 61 * time.Second, time.Second},
		{"never above the last", 16 * time.Second, 0, 30 * time.Second},
		{"stays there", 30 * time.Second, 0, 30 * time.Second},
	} {
		if got := defaultTiming().pause(c.backoff, c.lived); got != c.want {
			t.Errorf("%s: pause %v, want %v", c.name, got, c.want)
		}
	}
	deaths := []time.Time{at, at.Add(30 * time.Second), at.Add(60 * time.Second)}
	if got := since(deaths, at.Add(time.Second)); len(got) != 2 {
		t.Errorf("%d deaths are recent, want 2", len(got))
	}
}

// A restart that cannot be made backs off like one whose process dies.
func TestRestart_TwoAtOnce(t *testing.T) {
	t.Parallel()
	r := launch(t, 3, setup{roles: []string{good}, config: onFailure})
	r.kill(2, syscall.SIGKILL)
	r.kill(0, syscall.SIGKILL)
	back := func(index int) func() bool {
		return func() bool { s := r.look(index); return s.State == StateReady && s.Restarts == 1 }
	}
	r.await("engine 0 is back", back(0))
	r.await("engine 2 is back", back(2))
	for i, e := range r.Engines(r.soon()) {
		if e.Index != i || e.State != StateReady {
			t.Errorf("engine %d = %+v, want it ready in its place", i, e)
		}
	}
	if _, err := r.Config(r.soon()); err != nil {
		t.Errorf("Config: %v", err)
	}
}

// A stop calls off the restarts that are due.
func TestRestart_StopInThePause(t *testing.T) {
	t.Parallel()
	pause := func(t *timing) { t.firstBackoff = time.Hour }
	r := launch(t, 2, setup{roles: []string{good, drainsSlowly}, config: onFailure, timing: pause})
	r.kill(0, syscall.SIGKILL)
	r.awaitState(0, StateDead)
	begun := time.Now()
	r.signals <- syscall.SIGTERM
	r.awaitState(1, StateDraining)
	_ = r.send(r.soon(), restartEvent{r.members[0]}) // as if the pause had ended at this moment
	if err := r.end(); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("the stop took %v, want at most 1 s", took)
	}
	if len(r.started) != 2 {
		t.Errorf("%d processes were started, want 2", len(r.started))
	}
}

// With --announce-death the frontend hears of a dead engine on each of its sockets; a socket that is gone is no obstacle.
func TestRestart_AnnounceDeath(t *testing.T) {
	t.Parallel()
	var pullers []*zmtp.Puller
	addresses := []string{"tcp://127.0.0.1:9"}
	for range 2 {
		p, err := zmtp.ListenPull("tcp://127.0.0.1:0", zmtp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		pullers, addresses = append(pullers, p), append(addresses, p.Address())
	}
	announce := func(cfg *config.Config) { cfg.AnnounceDeath, cfg.HandshakeAddress = true, strings.Join(addresses, ",") }
	r := launch(t, 2, setup{roles: []string{good}, config: announce, timing: func(t *timing) { t.announce = 500 * time.Millisecond }})
	r.kill(1, syscall.SIGKILL)
	for i, p := range pullers {
		frames, err := p.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if len(frames) != 1 || string(frames[0]) != enginecore.EngineCoreDead {
			t.Errorf("output socket %d heard %q, want one frame %q", i, frames, enginecore.EngineCoreDead)
		}
	}
	r.awaitLog("death not announced")
}
