package worker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/protocol/enginecore"
)

func TestWorker_Request(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.TimeToFirstToken, c.InterTokenLatency, c.VocabSize = 30, 10, 50 }})
	r.add(request("a", 4))
	got := r.outputs.awaitEnd("a")
	if len(got.tokens) != 4 || got.chunks != 4 {
		t.Errorf("%d tokens in %d chunks, want 4 in 4", len(got.tokens), got.chunks)
	}
	for _, token := range got.tokens {
		if token >= 50 {
			t.Errorf("token %d, want less than the vocabulary's 50", token)
		}
	}
	if got.finish != enginecore.FinishLength || !got.finished {
		t.Errorf("finish %v, in finished_requests %v, want length, true", got.finish, got.finished)
	}
	want := &enginecore.PrefillStats{Prompt: 4, Computed: 4, CacheCreation: 4}
	if diff := cmp.Diff(want, got.prefill); diff != "" {
		t.Errorf("prefill stats (-want +got):\n%s", diff)
	}
	if len(got.events) != 2 || got.events[0].Type != enginecore.EventQueued || got.events[1].Type != enginecore.EventScheduled {
		t.Fatalf("events %v, want QUEUED and SCHEDULED, once", got.events)
	}
	if got.events[0].Time > got.events[1].Time {
		t.Errorf("queued at %f, after scheduled at %f", got.events[0].Time, got.events[1].Time)
	}
	got.checkPace(t, 0.030, 0.010)
}

// checkPace finds tokens that came before their time, by the engine's own clock. A busy machine may make them late.
func (s *seen) checkPace(t *testing.T, ttft, itl float64) {
	t.Helper()
	const rounding = 1e-6
	scheduled := s.events[1].Time
	for i, at := range s.at {
		if due := scheduled + ttft + float64(i)*itl; at < due-rounding {
			t.Errorf("token %d left at %f, scheduled at %f: due at %f", i, at, scheduled, due)
		}
	}
}

func TestWorker_SameSeedAndIDGiveTheSameTokens(t *testing.T) {
	tokens := func(change func(*config.Config), id string) []uint32 {
		r := newRig(t, rigOptions{change: change})
		r.add(request(id, 50))
		return r.outputs.awaitEnd(id).tokens
	}
	plain := tokens(nil, "a")
	if diff := cmp.Diff(plain, tokens(func(c *config.Config) { c.OutputTokenChunkSize, c.TimeToFirstToken, c.TimeToFirstTokenStdDev = 7, 5, 2 }, "a")); diff != "" {
		t.Errorf("chunks and deviations change the tokens (-without +with):\n%s", diff)
	}
	if cmp.Equal(plain, tokens(nil, "b")) {
		t.Error("another id gives the same tokens")
	}
	if cmp.Equal(plain, tokens(func(c *config.Config) { c.Seed = 1 }, "a")) {
		t.Error("another seed gives the same tokens")
	}
}

// Who has seen the last token of a request sees it counted.
func TestWorker_CountsBeforeItAnswers(t *testing.T) {
	r := newRig(t, rigOptions{})
	const requests = 2000
	ended, missed := uint64(0), 0
	r.outputs.atFinish(func(string) {
		ended++
		if r.page.Completed.Load() < ended {
			missed++
		}
	})
	for i := range requests {
		r.add(request(fmt.Sprint(i), 1+uint32(i%3)))
	}
	for i := range requests {
		r.outputs.awaitEnd(fmt.Sprint(i))
	}
	if missed > 0 {
		t.Errorf("%d of %d ends were seen before they were counted", missed, requests)
	}
}

func TestWorker_LedgerClosesUnderRandomAborts(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) {
		c.MaxNumSeqs, c.InterTokenLatency, c.TimeToFirstToken, c.TimeScale = 16, 2, 3, 4
		c.FailureInjectionRate, c.FailureTypes = 0.1, []string{config.FailError, config.FailLength}
	}})
	random := rand.New(rand.NewPCG(1, 2))
	const requests = 3000
	for i := range requests {
		r.add(request(fmt.Sprint(i), 1+random.Uint32N(8)))
		if random.IntN(3) == 0 {
			_ = r.frontend.Client(0).Abort(0, fmt.Sprint(random.IntN(i+1)), "nobody")
		}
	}
	for i := range requests {
		r.outputs.awaitEnd(fmt.Sprint(i))
	}
	got := r.stats()
	if got.Received != requests || got.Received != got.Completed+got.Failed+got.Aborted || got.Running+got.Waiting != 0 {
		t.Errorf("ledger is open: %+v", got)
	}
	if got.Completed == 0 || got.Failed == 0 || got.Aborted == 0 {
		t.Errorf("%+v: the test wants some of each", got)
	}
}

// A call sees everything that came before it.
func TestWorker_StatsSeeWhatCameBefore(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.MaxNumSeqs, c.TimeToFirstToken = 1, 60_000 }})
	for i := range 10 {
		r.add(request(fmt.Sprint(i), 1))
	}
	// The requests come over another socket than the call: wait until the last was taken.
	r.awaitCounted(10)
	if got, want := r.stats(), (ipc.Stats{Received: 10, Running: 1, Waiting: 9}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
	r.patch(1, config.Patch{{Key: "max_num_seqs", Raw: "128"}})
	if got, want := r.stats(), (ipc.Stats{Received: 10, Running: 10}); got != want {
		t.Errorf("stats after raising max_num_seqs %+v, want %+v", got, want)
	}
}

func (r *rig) awaitCounted(n uint64) {
	r.t.Helper()
	for ctx := timeout(r.t); r.stats().Received < n; {
		if ctx.Err() != nil {
			r.t.Fatalf("%d requests counted within %v, want %d", r.stats().Received, patience, n)
		}
	}
}

func TestWorker_Changes(t *testing.T) {
	r := newRig(t, rigOptions{})
	itl := func(raw string) config.Patch { return config.Patch{{Key: "inter_token_latency", Raw: raw}} }
	current := func() uint64 { return r.call(ipc.Call{Op: ipc.OpConfig}).Config.InterTokenLatency }

	r.call(ipc.Call{Op: ipc.OpPrepare, Change: 1, Patch: itl("7")})
	if got := current(); got != 0 {
		t.Errorf("inter-token latency %d after prepare, want 0", got)
	}
	r.call(ipc.Call{Op: ipc.OpAbort, Change: 1})
	r.call(ipc.Call{Op: ipc.OpCommit, Change: 1})
	if got := current(); got != 0 {
		t.Errorf("inter-token latency %d after a commit of what was aborted, want 0", got)
	}
	r.call(ipc.Call{Op: ipc.OpPrepare, Change: 2, Patch: itl("8")})
	r.call(ipc.Call{Op: ipc.OpPrepare, Change: 3, Patch: itl("9")})
	r.call(ipc.Call{Op: ipc.OpAbort, Change: 2})
	r.call(ipc.Call{Op: ipc.OpCommit, Change: 2})
	if got := current(); got != 0 {
		t.Errorf("inter-token latency %d after a commit of what was replaced, want 0", got)
	}
	if got := r.call(ipc.Call{Op: ipc.OpCommit, Change: 3}).Config.InterTokenLatency; got != 9 {
		t.Errorf("inter-token latency %d after commit, want 9", got)
	}
	if got := r.page.Generation.Load(); got != 3 {
		t.Errorf("generation %d, want 3", got)
	}
	if a := r.call(ipc.Call{Op: ipc.OpPrepare, Change: 4, Patch: config.Patch{{Key: "max_num_seqs", Raw: "0"}}}); a.Refused == "" {
		t.Error("a patch out of range was prepared")
	}
	if a := r.call(ipc.Call{Op: "dance"}); a.Refused == "" {
		t.Error("an operation that nobody knows was performed")
	}
}

func TestWorker_TraceConflicts(t *testing.T) {
	path := writeTrace(t, `{"prompt_tokens":4,"output_tokens":3,"ttft_ms":40,"itl_ms":[20,20]}`)
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.LatencyTrace = path }})
	for _, o := range config.Options() {
		if !o.Live {
			continue
		}
		c := config.Default()
		a := r.call(ipc.Call{Op: ipc.OpPrepare, Change: 1, Patch: config.Patch{{Key: o.Key(), Raw: o.Value(&c).JSON()}}})
		if refused := a.Refused != ""; refused != o.Timing {
			t.Errorf("%s: refused %v (%s), want %v", o.Key(), refused, a.Refused, o.Timing)
		}
	}
	r.add(request("a", 3))
	got := r.outputs.awaitEnd("a")
	got.checkPace(t, 0.040, 0.020)
}

func TestWorker_ResetKeepsWhatRuns(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.TimeToFirstToken = 200 }})
	for i := range 10 {
		r.add(request(fmt.Sprint(i), 1))
	}
	r.awaitCounted(10)
	r.call(ipc.Call{Op: ipc.OpPrepare, Change: 1, ResetStats: true})
	r.call(ipc.Call{Op: ipc.OpCommit, Change: 1})
	if got, want := r.stats(), (ipc.Stats{Running: 10}); got != want {
		t.Errorf("stats after reset %+v, want %+v", got, want)
	}
	for i := range 10 {
		r.outputs.awaitEnd(fmt.Sprint(i))
	}
	if got, want := r.stats(), (ipc.Stats{Completed: 10}); got != want {
		t.Errorf("stats at the end %+v, want %+v", got, want)
	}
}

func TestWorker_GaugesReachTheFrontendWithoutOutputs(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.TimeToFirstToken, c.MaxNumSeqs = 60_000, 1 }})
	last := func(running, waiting uint64) func() bool {
		return func() bool {
			if len(r.outputs.stats) == 0 {
				return false
			}
			s := r.outputs.stats[len(r.outputs.stats)-1]
			return s.Running == running && s.Waiting == waiting
		}
	}
	r.add(request("a", 1))
	r.add(request("b", 1))
	r.outputs.await("gauges of 1 running, 1 waiting", last(1, 1))
	if err := r.frontend.Client(0).Abort(0, "a", "b"); err != nil {
		t.Fatal(err)
	}
	r.outputs.await("gauges of nothing", last(0, 0))
	if got := r.outputs.awaitEnd("a"); got.finish != enginecore.FinishAbort || !got.finished {
		t.Errorf("finish %v, in finished_requests %v, want abort, true", got.finish, got.finished)
	}
}

func TestWorker_LogRequests(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.LogRequests = true }})
	r.add(request("a", 2))
	r.outputs.awaitEnd("a")
	r.patch(1, config.Patch{{Key: "failure_injection_rate", Raw: "1"}})
	r.add(request("b", 2))
	r.outputs.awaitEnd("b")
	r.conn.Close()
	r.awaitStopped()
	for _, want := range []string{
		`"request_id":"a","prompt_len":4,"max_tokens":2,"message":"request started"`,
		`"request_id":"a","prompt_len":4,"output_tokens":2,"finish_reason":"length","message":"request finished"`,
		`"request_id":"b","finish_reason":"error","reason":"failure injection","message":"request failed on arrival"`,
	} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("log lacks %s:\n%s", want, r.log)
		}
	}
}

func TestWorker_LeavesWithItsSupervisor(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.TimeToFirstToken = 60_000 }})
	r.add(request("a", 1))
	r.awaitCounted(1)
	r.conn.Close()
	if err := r.awaitStopped(); !errors.Is(err, errOrphaned) {
		t.Errorf("Run returned %v, want %v", err, errOrphaned)
	}
	if got := r.outputs.awaitEnd("a"); got.finish != enginecore.FinishAbort {
		t.Errorf("finish %v, want abort", got.finish)
	}
}

func TestWorker_RefusesAStrangeSupervisor(t *testing.T) {
	for name, start := range map[string]ipc.Start{
		"magic":   {Magic: "hello", Version: ipc.Version},
		"version": {Magic: ipc.Magic, Version: ipc.Version + 1},
		"filter":  {Magic: ipc.Magic, Version: ipc.Version, LogFilter: "a=loud"},
		"config":  {Magic: ipc.Magic, Version: ipc.Version, Config: config.Config{VLLMVersion: "9.9"}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := runWith(t, ipc.KindStart, start); err == nil {
				t.Error("Run returned no error")
			}
		})
	}
	if err := runWith(t, ipc.KindCall, ipc.Call{}); err == nil {
		t.Error("Run accepted a first frame that is no start")
	}
}
