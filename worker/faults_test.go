package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/logs"
	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/worker/engine"
)

func after(k uint64) *uint64 { return &k }

// applied is how often the engine was struck by a kind of fault.
func (r *rig) applied(kind string) uint64 {
	for i, k := range ipc.FaultKinds {
		if k == kind {
			return r.page.FaultsApplied[i].Load()
		}
	}
	r.t.Fatalf("no kind %q", kind)
	return 0
}

func TestFaultKinds_AllTranslated(t *testing.T) {
	seen := map[engine.FaultKind]bool{}
	for _, word := range ipc.FaultKinds {
		kind, ok := faultKinds[word]
		if !ok || seen[kind] {
			t.Errorf("%q has no kind of its own", word)
		}
		seen[kind] = true
	}
	if len(seen) != engine.FaultKinds {
		t.Errorf("%d kinds have words, want %d", len(seen), engine.FaultKinds)
	}
}

// As many requests fail as the fault counts, each after exactly its tokens; who has seen the end sees it counted.
func TestFaults_Midstream(t *testing.T) {
	for kind, finish := range map[string]enginecore.FinishReason{
		ipc.FaultError: enginecore.FinishError, ipc.FaultLength: enginecore.FinishLength, ipc.FaultRepetition: enginecore.FinishRepetition,
	} {
		t.Run(kind, func(t *testing.T) {
			r := newRig(t, rigOptions{change: func(c *config.Config) { c.OutputTokenChunkSize = 2 }})
			r.arm(ipc.Fault{ID: 1, Kind: kind, Count: 20, AfterTokens: after(3)})
			r.call(ipc.Call{Op: ipc.OpPing})
			for i := range 50 {
				r.add(request(fmt.Sprint(i), 10))
			}
			struck := uint64(0)
			for i := range 50 {
				got := r.outputs.awaitEnd(fmt.Sprint(i))
				want, tokens := enginecore.FinishLength, 10
				if i < 20 {
					want, tokens = finish, 3
					struck++
				}
				if got.finish != want || len(got.tokens) != tokens || !got.finished {
					t.Errorf("request %d: %d tokens, finish %v, want %d, %v", i, len(got.tokens), got.finish, tokens, want)
				}
				if r.applied(kind) < struck {
					t.Errorf("request %d was struck before it was counted", i)
				}
			}
			if got, want := r.stats(), (ipc.Stats{Received: 50, Completed: 30, Failed: 20}); got != want {
				t.Errorf("stats %+v, want %+v", got, want)
			}
			if got := r.applied(kind); got != 20 {
				t.Errorf("applied = %d, want 20", got)
			}
		})
	}
}

func TestFaults_Stall(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.InterTokenLatency = 5 }})
	r.arm(ipc.Fault{ID: 1, Kind: ipc.FaultStall, Count: 1, AfterTokens: after(2), Delay: 150})
	r.call(ipc.Call{Op: ipc.OpPing})
	r.add(request("a", 5))
	r.add(request("b", 5))
	got := r.outputs.awaitEnd("a")
	if len(got.tokens) != 5 || got.finish != enginecore.FinishLength {
		t.Fatalf("%d tokens, finish %v, want 5, length", len(got.tokens), got.finish)
	}
	got.checkPace(t, 0, 0.005)
	scheduled := got.events[1].Time
	for i := 2; i < 5; i++ {
		if due := scheduled + float64(i)*0.005 + 0.150; got.at[i] < due-1e-6 {
			t.Errorf("token %d left at %f, due at %f", i, got.at[i], due)
		}
	}
	if got := r.outputs.awaitEnd("b"); len(got.tokens) != 5 || got.finish != enginecore.FinishLength {
		t.Errorf("beside it: %d tokens, finish %v, want 5, length", len(got.tokens), got.finish)
	}
}

// A hung engine takes requests and answers every question, and nothing comes of it until it is over.
func TestFaults_Hang(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.add(request("before", 1))
	r.outputs.awaitEnd("before")
	r.arm(ipc.Fault{ID: 1, Kind: ipc.FaultHang})
	r.call(ipc.Call{Op: ipc.OpPing})
	r.outputs.mu.Lock()
	messages := r.outputs.messages
	r.outputs.mu.Unlock()
	r.add(request("a", 3))
	r.add(request("a", 3)) // fails: its id is in use
	r.awaitCounted(3)
	if got, want := r.stats(), (ipc.Stats{Received: 3, Completed: 1, Failed: 1, Waiting: 1}); got != want {
		t.Errorf("stats while it hangs %+v, want %+v", got, want)
	}
	if value, err := r.frontend.Client(0).Utility(timeout(t), 0, "is_scheduler_paused", msgp.AppendArrayHeader(nil, 0)); err != nil || value[0] != 0xc2 {
		t.Errorf("is_scheduler_paused = %x, %v, want false", value, err)
	}
	r.patch(2, config.Patch{{Key: "inter_token_latency", Raw: "1"}})
	r.outputs.mu.Lock()
	if got := r.outputs.messages; got != messages {
		t.Errorf("%d messages came while it hung, want none", got-messages)
	}
	r.outputs.mu.Unlock()
	r.disarm(3, 1)
	r.outputs.await("all of a's outputs", func() bool { s := r.outputs.requests["a"]; return s != nil && len(s.tokens) == 3 && s.chunks == 4 })
	if got, want := r.stats(), (ipc.Stats{Received: 3, Completed: 2, Failed: 1}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
}

// A shutdown does not wait for the end of a hang, and its last words leave.
func TestFaults_HangAndDrain(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.ShutdownTimeout = 0 }})
	r.arm(ipc.Fault{ID: 1, Kind: ipc.FaultHang})
	r.add(request("a", 3))
	r.awaitCounted(1)
	r.terminate()
	if got := r.outputs.awaitEnd("a"); got.finish != enginecore.FinishAbort {
		t.Errorf("finish %v, want abort", got.finish)
	}
	if err := r.awaitStopped(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// What a request got before a crash has left, and what struck is on the page.
func TestFaults_Crash(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.arm(ipc.Fault{ID: 5, Kind: ipc.FaultCrash, Count: 1, AfterTokens: after(7)})
	r.call(ipc.Call{Op: ipc.OpPing})
	r.add(request("a", 100))
	if err := r.awaitStopped(); !errors.Is(err, errCrashed) {
		t.Errorf("Run: %v, want %v", err, errCrashed)
	}
	<-r.crashed
	r.outputs.await("7 tokens", func() bool { s := r.outputs.requests["a"]; return s != nil && len(s.tokens) == 7 })
	if got := r.outputs.requests["a"]; got.finish != enginecore.FinishNone {
		t.Errorf("finish %v, want none", got.finish)
	}
	if got := r.applied(ipc.FaultCrash); got != 1 {
		t.Errorf("applied = %d, want 1", got)
	}
	if got := r.page.Applied(ipc.ArmedFault{Fault: ipc.Fault{ID: 5}, Slot: 5}); got != 1 {
		t.Errorf("the fault has struck %d times, want 1", got)
	}
	if lost := r.page.CloseLedger(); lost != 1 {
		t.Errorf("lost = %d, want 1", lost)
	}
}

// A crash waits for nobody who hands something in, though its outputs' writers do, while the queue is full.
func TestFaults_CrashWithFullQueue(t *testing.T) {
	l := &loop{inputs: make(chan input), ended: make(chan struct{}), log: logs.Nop()} // a queue without room
	l.outputs, _ = clientOf(t, func() { l.send(context.Background(), lowWaterInput{}) })
	died := false
	l.die = func() { died = true }
	l.outputs.send(l.outputs.clients[0].conn, []byte("the last word"))
	if err := l.crash(); !errors.Is(err, errCrashed) || !died {
		t.Errorf("crash = %v, died %v, want %v and a dead process", err, died, errCrashed)
	}
	close(l.ended)
}

func TestFaults_CrashAtOnce(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.arm(ipc.Fault{ID: 1, Kind: ipc.FaultCrash})
	if err := r.awaitStopped(); !errors.Is(err, errCrashed) {
		t.Errorf("Run: %v, want %v", err, errCrashed)
	}
}

// The handshake is late by the delay, and the next is not.
func TestFaults_SlowHandshake(t *testing.T) {
	const delay = 300 * time.Millisecond
	start := time.Now()
	r := newRig(t, rigOptions{faults: []ipc.ArmedFault{{
		Fault: ipc.Fault{ID: 1, Kind: ipc.FaultSlowHandshake, Count: 1, Delay: uint64(delay.Milliseconds())}, Slot: 3,
	}}})
	if took := time.Since(start); took < delay {
		t.Errorf("ready after %v, want at least %v", took, delay)
	}
	if got := r.applied(ipc.FaultSlowHandshake); got != 1 {
		t.Errorf("applied = %d, want 1", got)
	}
	if got := r.page.Applied(ipc.ArmedFault{Fault: ipc.Fault{ID: 1}, Slot: 3}); got != 1 {
		t.Errorf("the fault has struck %d times, want 1", got)
	}
}

// A change that was not prepared arms nothing, one that is aborted neither, and a kind that nobody knows is refused.
func TestFaults_TwoRounds(t *testing.T) {
	r := newRig(t, rigOptions{})
	fault := &ipc.ArmedFault{Fault: ipc.Fault{ID: 1, Kind: ipc.FaultError}}
	r.call(ipc.Call{Op: ipc.OpPrepare, Change: 1, Arm: fault})
	r.call(ipc.Call{Op: ipc.OpAbort, Change: 1})
	r.call(ipc.Call{Op: ipc.OpCommit, Change: 1})
	r.add(request("a", 1))
	if got := r.outputs.awaitEnd("a"); got.finish != enginecore.FinishLength {
		t.Errorf("finish %v, want length", got.finish)
	}
	for _, f := range []ipc.ArmedFault{{Fault: ipc.Fault{Kind: "flood"}}, {Fault: ipc.Fault{Kind: ipc.FaultError}, Slot: ipc.MaxFaults}} {
		if a := r.call(ipc.Call{Op: ipc.OpPrepare, Change: 2, Arm: &f}); a.Refused == "" {
			t.Errorf("%+v was prepared", f)
		}
	}
}

// A fault that takes the slot of another ends that one.
func TestFaults_SlotTaken(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.arm(ipc.Fault{ID: 1, Kind: ipc.FaultError})
	r.arm(ipc.Fault{ID: 1 + ipc.MaxFaults, Kind: ipc.FaultRepetition, Count: 1})
	r.call(ipc.Call{Op: ipc.OpPing})
	for i, want := range []enginecore.FinishReason{enginecore.FinishRepetition, enginecore.FinishLength} {
		r.add(request(fmt.Sprint(i), 1))
		if got := r.outputs.awaitEnd(fmt.Sprint(i)); got.finish != want {
			t.Errorf("request %d: finish %v, want %v", i, got.finish, want)
		}
	}
}
