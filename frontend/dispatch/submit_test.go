package dispatch

import (
	"errors"
	"strings"
	"testing"
	"time"

	"vllm-vcr/protocol/enginecore"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestSubmit_Request(t *testing.T) {
	r := newRig(t, 1, nil)
	req := request("cmpl-1", 7)
	req.Priority, req.CacheSalt, req.LoRA = -3, "salt", &enginecore.LoRARequest{Name: "sql", ID: 4, Path: "/a"}
	req.Arrived = time.Unix(1700000000, 5e8)
	s := r.submit(t, req)
	got := r.engines[0].request()
	want := req.Request
	want.ID, want.ArrivalTime = s.ID(), 1700000000.5
	ignored := cmpopts.IgnoreFields(enginecore.SamplingParams{}, "Wire", "Explicit")
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), ignored); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(s.ID(), "cmpl-1-") || len(s.ID()) != len("cmpl-1-00000000") {
		t.Errorf("id = %q, want the client's with a suffix of eight", s.ID())
	}
	if twin := r.submit(t, req); twin.ID() == s.ID() {
		t.Errorf("two requests have the id %s", s.ID())
	}
}

func TestSubmit_ArrivesNow(t *testing.T) {
	r := newRig(t, 1, nil)
	before := float64(time.Now().UnixNano()) / 1e9
	r.submit(t, request("a", 1))
	if got := r.engines[0].request().ArrivalTime; got < before || got > before+patience.Seconds() {
		t.Errorf("arrival time = %v, want a moment after %v", got, before)
	}
}

func TestSubmitAll_Choices(t *testing.T) {
	w := &witness{}
	r := newRig(t, 2, w)
	req := request("a", 9)
	req.Choices, req.Sampling.N, req.Sampling.Seed = 3, 3, enginecore.Some[int64](40)
	req.Vary = func(choice int, p *enginecore.SamplingParams) { p.MinTokens = uint32(choice) }
	streams, err := r.SubmitAll(req)
	if err != nil {
		t.Fatal(err)
	}
	for choice, s := range streams {
		e := r.engines[s.Rank()]
		got := e.request()
		if got.ID != s.ID() || got.ID[:2] != string('0'+rune(choice))+"_" || got.ExternalID != "a" || s.Choice() != choice {
			t.Errorf("choice %d: id %s of %q, stream %s", choice, got.ID, got.ExternalID, s.ID())
		}
		p := got.Sampling
		if p.N != 1 || p.Seed.Value != 40+int64(choice) || p.MinTokens != uint32(choice) {
			t.Errorf("choice %d: n %d, seed %v, min_tokens %d", choice, p.N, p.Seed.Value, p.MinTokens)
		}
		e.send(1, nil, finished(s.ID(), enginecore.FinishLength, make([]uint32, choice+1)...))
		drain(within(t), s)
	}
	if n := req.Sampling.N; n != 3 {
		t.Errorf("the caller's n = %d, want it untouched", n)
	}
	_, ends := w.seen()
	if len(ends) != 3 || ends[0].Choices != 0 || ends[1].Choices != 0 || ends[2].Choices != 3 || ends[2].MaxGenerated != 3 {
		t.Errorf("ends = %+v, want the last one to tell of 3 choices and at most 3 tokens", ends)
	}
}

func TestSubmit_Rank(t *testing.T) {
	r := newRig(t, 3, nil)
	for range 3 {
		req := request("a", 1)
		req.Rank = enginecore.Some(2)
		if s := r.submit(t, req); s.Rank() != 2 {
			t.Errorf("rank = %d, want 2", s.Rank())
		}
		if got := r.engines[2].request().DataParallelRank; got != enginecore.Some[uint32](2) {
			t.Errorf("data_parallel_rank = %v, want 2", got)
		}
	}
	for _, rank := range []int{-1, 3} {
		req := request("a", 1)
		req.Rank = enginecore.Some(rank)
		if _, err := r.Submit(req); !errors.Is(err, ErrRank) || !strings.Contains(err.Error(), "0 to 2") {
			t.Errorf("rank %d: %v, want ErrRank with the ranks there are", rank, err)
		}
	}
	r.engines[2].vanish()
	await(t, "loss", r.changes)
	req := request("a", 1)
	req.Rank = enginecore.Some(2)
	var dead *EngineDeadError
	if _, err := r.Submit(req); !errors.Is(err, ErrNoEngine) || !errors.As(err, &dead) {
		t.Errorf("rank of a dead engine: %v, want ErrNoEngine and an EngineDeadError", err)
	}
}

// The engines' stats decide, and what was sent since.
func TestSubmit_Balance(t *testing.T) {
	w := &witness{}
	r := newRig(t, 2, w)
	last := request("last", 1)
	last.Rank = enginecore.Some(0)
	s := r.submit(t, last)
	r.engines[0].request()
	stats := enginecore.SchedulerStats{Waiting: 1, SkippedWaiting: 1, Running: 1}
	r.engines[0].send(1, &stats, finished(s.ID(), enginecore.FinishStop, 1))
	drain(within(t), s) // so the stats have been read: 2 × 4 + 1 = 9
	var ranks []int
	for range 4 {
		ranks = append(ranks, r.submit(t, request("a", 1)).Rank())
	}
	if diff := cmp.Diff([]int{1, 1, 1, 0}, ranks); diff != "" {
		t.Errorf("ranks (-want +got):\n%s", diff)
	}
	got := r.Engines()
	want := []Status{{Rank: 0, Waiting: 2, Running: 1, Open: 1}, {Rank: 1, Open: 3}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Engines (-want +got):\n%s", diff)
	}
}
