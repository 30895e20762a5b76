package worker

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/protocol/enginecore"
)

// runWith runs a worker whose supervisor says one thing and nothing else.
func runWith(t *testing.T, kind ipc.Kind, body any) error {
	t.Helper()
	page, file, err := ipc.NewPage()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	defer page.Close()
	ours, theirs := net.Pipe()
	defer ours.Close()
	frame, err := ipc.Append(nil, kind, 0, body)
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan struct{})
	go func() { defer close(written); _, _ = ours.Write(frame) }()
	err = Run(Env{Supervisor: theirs, Page: page, Stderr: &syncBuffer{}})
	<-written
	return err
}

func writeTrace(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestShutdown_DrainsThenLeaves(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.TimeToFirstToken, c.InterTokenLatency = 100, 10 }})
	r.add(request("running", 5))
	r.awaitCounted(1)
	r.write(ipc.KindCall, 0, ipc.Call{Op: ipc.OpDrain, Timeout: 60})
	r.awaitState(ipc.StateDraining)
	r.add(request("late", 5))
	if got := r.outputs.awaitEnd("late"); got.finish != enginecore.FinishAbort {
		t.Errorf("a request that came too late: finish %v, want abort", got.finish)
	}
	_, err := r.frontend.Client(0).Utility(timeout(t), 0, "is_sleeping", nil)
	if err == nil || !strings.Contains(err.Error(), "Server shutting down") {
		t.Errorf("utility call while draining: %v, want Server shutting down", err)
	}
	if got := r.outputs.awaitEnd("running"); got.finish != enginecore.FinishLength || len(got.tokens) != 5 {
		t.Errorf("a running request: finish %v with %d tokens, want length with 5", got.finish, len(got.tokens))
	}
	if err := r.awaitStopped(); err != nil {
		t.Errorf("Run returned %v, want nil", err)
	}
	if got, want := r.page.Stats(), (ipc.Stats{Received: 2, Completed: 1, Aborted: 1}); got != want {
		t.Errorf("ledger %+v, want %+v", got, want)
	}
}

func TestShutdown_AbortsWithoutTimeout(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.TimeToFirstToken, c.MaxNumSeqs = 60_000, 1 }})
	r.add(request("running", 5))
	r.add(request("waiting", 5))
	r.awaitCounted(2)
	r.terminate()
	for _, id := range []string{"running", "waiting"} {
		if got := r.outputs.awaitEnd(id); got.finish != enginecore.FinishAbort || !got.finished {
			t.Errorf("%s: finish %v, in finished_requests %v, want abort, true", id, got.finish, got.finished)
		}
	}
	if err := r.awaitStopped(); err != nil {
		t.Errorf("Run returned %v, want nil", err)
	}
}

func TestShutdown_AbortsAtItsDeadline(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.TimeToFirstToken, c.ShutdownTimeout = 60_000, 1 }})
	r.add(request("a", 5))
	r.awaitCounted(1)
	r.terminate()
	if got := r.outputs.awaitEnd("a"); got.finish != enginecore.FinishAbort {
		t.Errorf("finish %v, want abort", got.finish)
	}
	if err := r.awaitStopped(); err != nil {
		t.Errorf("Run returned %v, want nil", err)
	}
}

func TestShutdown_SecondSignalKills(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.TimeToFirstToken, c.ShutdownTimeout = 60_000, 60 }})
	r.add(request("a", 5))
	r.awaitCounted(1)
	r.terminate()
	r.awaitState(ipc.StateDraining)
	r.signals <- syscall.SIGINT
	if err := r.awaitStopped(); !errors.Is(err, ErrKilled) {
		t.Errorf("Run returned %v, want %v", err, ErrKilled)
	}
}

func TestShutdown_WhileNobodyIsThereToJoin(t *testing.T) {
	r := emptyRig(t)
	r.address = "tcp://127.0.0.1:1"
	r.start(t, rigOptions{}, nil)
	r.awaitState(ipc.StateStarting)
	if a := r.call(ipc.Call{Op: ipc.OpConfig}); a.Config == nil {
		t.Error("no configuration before the frontend is there")
	}
	r.terminate()
	if err := r.awaitStopped(); err != nil {
		t.Errorf("Run returned %v, want nil", err)
	}
}

func TestShutdown_DrainOfAPausedEngineEndsAtTheDeadline(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.TimeToFirstToken, c.ShutdownTimeout = 10, 1 }})
	args := msgp.AppendBool(msgp.AppendString(msgp.AppendArrayHeader(nil, 2), "keep"), true)
	if _, err := r.frontend.Client(0).Utility(timeout(t), 0, "pause_generation", args); err != nil {
		t.Fatal(err)
	}
	r.add(request("a", 5))
	r.awaitCounted(1)
	r.terminate()
	if got := r.outputs.awaitEnd("a"); got.finish != enginecore.FinishAbort {
		t.Errorf("finish %v, want abort", got.finish)
	}
}

// A drained engine leaves its frontend, and is still there to be asked, changed and shut down.
func TestDrain_Stays(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.TimeToFirstToken, c.InterTokenLatency = 100, 10 }})
	r.add(request("running", 5))
	r.awaitCounted(1)
	if a := r.call(ipc.Call{Op: ipc.OpDrain, Timeout: 60, Stay: true}); *a.Drain != (ipc.Drain{Unfinished: 1, Timeout: 60}) {
		t.Errorf("%+v, want 1 unfinished, and 60 s", a.Drain)
	}
	r.awaitState(ipc.StateDraining)
	r.add(request("late", 5))
	if got := r.outputs.awaitEnd("late"); got.finish != enginecore.FinishAbort {
		t.Errorf("a request that came too late: finish %v, want abort", got.finish)
	}
	if got := r.outputs.awaitEnd("running"); got.finish != enginecore.FinishLength || len(got.tokens) != 5 {
		t.Errorf("a running request: finish %v with %d tokens, want length with 5", got.finish, len(got.tokens))
	}
	r.awaitState(ipc.StateDrained)
	if got, want := r.stats(), (ipc.Stats{Received: 2, Completed: 1, Aborted: 1}); got != want {
		t.Errorf("ledger %+v, want %+v", got, want)
	}
	if live := r.patch(1, config.Patch{{Key: "inter_token_latency", Raw: "7"}}); live.InterTokenLatency != 7 {
		t.Errorf("latency %d after a patch, want 7", live.InterTokenLatency)
	}
	if a := r.call(ipc.Call{Op: ipc.OpDrain, Timeout: 60, Stay: true}); a.Drain.Unfinished != 0 {
		t.Errorf("%+v, want none unfinished", a.Drain)
	}
	r.call(ipc.Call{Op: ipc.OpPing})
	r.write(ipc.KindCall, 0, ipc.Call{Op: ipc.OpDrain, Timeout: 60})
	if err := r.awaitStopped(); err != nil {
		t.Errorf("Run returned %v, want nil", err)
	}
}

// The earlier of two deadlines counts, whichever was told first.
func TestDrain_EarlierDeadlineCounts(t *testing.T) {
	for _, timeouts := range [][2]uint64{{3600, 0}, {2, 3600}} {
		r := newRig(t, rigOptions{change: func(c *config.Config) { c.TimeToFirstToken = 60_000 }})
		r.add(request("a", 5))
		r.awaitCounted(1)
		for i, timeout := range timeouts {
			want := ipc.Drain{Unfinished: 1, Timeout: slices.Min(timeouts[:i+1])}
			if a := r.call(ipc.Call{Op: ipc.OpDrain, Timeout: timeout, Stay: true}); *a.Drain != want {
				t.Errorf("drain for %d s = %+v, want %+v", timeout, a.Drain, want)
			}
		}
		if got := r.outputs.awaitEnd("a"); got.finish != enginecore.FinishAbort {
			t.Errorf("finish %v, want abort", got.finish)
		}
		r.awaitState(ipc.StateDrained)
		if got, want := r.stats(), (ipc.Stats{Received: 1, Aborted: 1}); got != want {
			t.Errorf("ledger %+v, want %+v", got, want)
		}
	}
}

// A signal has a worker leave that was to stay.
func TestDrain_ThenSignal(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.TimeToFirstToken = 60_000 }})
	r.add(request("a", 5))
	r.awaitCounted(1)
	r.call(ipc.Call{Op: ipc.OpDrain, Timeout: 3600, Stay: true})
	r.terminate()
	if err := r.awaitStopped(); err != nil {
		t.Errorf("Run returned %v, want nil", err)
	}
	if got, want := r.page.Stats(), (ipc.Stats{Received: 1, Aborted: 1}); got != want {
		t.Errorf("ledger %+v, want %+v", got, want)
	}
}

// There is nothing to leave before a frontend is there.
func TestDrain_BeforeItJoined(t *testing.T) {
	r := emptyRig(t)
	r.address = "tcp://127.0.0.1:1"
	r.start(t, rigOptions{}, nil)
	r.awaitState(ipc.StateStarting)
	r.call(ipc.Call{Op: ipc.OpDrain, Timeout: 3600, Stay: true})
	r.awaitState(ipc.StateDrained)
	r.call(ipc.Call{Op: ipc.OpPing})
}
