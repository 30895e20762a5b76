package model

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"vllm-vcr/config"
	"vllm-vcr/supervisor"
)

// setting is one way to change an engine.
type setting struct {
	patch config.Patch
	apply func(*config.Live)
}

// times is how long a request takes, in ms: to its first token, and from one to the next.
func times(first, next uint64) setting {
	return setting{config.Patch{{Key: "time_to_first_token", Raw: fmt.Sprint(first)}, {Key: "inter_token_latency", Raw: fmt.Sprint(next)}},
		func(l *config.Live) { l.TimeToFirstToken, l.InterTokenLatency = first, next }}
}

func slots(n uint64) setting {
	return setting{config.Patch{{Key: "max_num_seqs", Raw: fmt.Sprint(n)}}, func(l *config.Live) { l.MaxNumSeqs = n }}
}

func longest(n uint64) setting {
	return setting{config.Patch{{Key: "max_model_len", Raw: fmt.Sprint(n)}}, func(l *config.Live) { l.MaxModelLen = n }}
}

func failing(rate float64, kind string) setting {
	return setting{
		config.Patch{{Key: "failure_injection_rate", Raw: fmt.Sprint(rate)}, {Key: "failure_types", Raw: fmt.Sprintf("[%q]", kind)}},
		func(l *config.Live) { l.FailureInjectionRate, l.FailureTypes = rate, []string{kind} },
	}
}

// settings are drawn from. None leaves it to chance whether a request fails: a storm does.
var settings = []setting{
	times(0, 0), times(0, 0), times(1, 1), times(held, 0), times(held, 0),
	slots(1), slots(3), slots(128), longest(0), longest(12),
	failing(0, config.FailError), failing(1, config.FailError), failing(1, config.FailLength), failing(1, config.FailRepetition),
}

// patch changes all engines or one.
func (h *history) patch() {
	s := settings[h.random.IntN(len(settings))]
	if h.random.IntN(2) == 0 {
		rank := h.random.IntN(len(h.engines))
		h.change(fmt.Sprintf("engine %d: patch %v", rank, s.patch), rank, rank, s.apply, func(ctx context.Context) (err error) {
			_, err = h.PatchEngine(ctx, rank, s.patch)
			return err
		})
		return
	}
	h.change(fmt.Sprintf("patch %v", s.patch), 0, len(h.engines)-1, s.apply, func(ctx context.Context) (err error) {
		_, err = h.Patch(ctx, s.patch)
		return err
	})
}

func (h *history) resetConfig() {
	apply := func(l *config.Live) { *l = h.engines[0].launched.Clone() }
	h.change("reset the configuration", 0, len(h.engines)-1, apply, func(ctx context.Context) (err error) {
		_, err = h.ResetConfig(ctx)
		return err
	})
}

// change makes a change from one engine to another, all of them or none. Who arrived before it has settled before it.
func (h *history) change(name string, first, last int, apply func(*config.Live), do func(context.Context) error) {
	h.note("%s", name)
	h.settle()
	ctx, cancel := soon()
	defer cancel()
	if err := do(ctx); h.failed(err, first, last) {
		return
	}
	for rank := first; rank <= last; rank++ {
		h.returned(rank)
		apply(&h.engines[rank].live)
	}
}

// failed judges the error of a call to several engines: there is one only where one of them was dead, and it names that.
func (h *history) failed(err error, first, last int) bool {
	if err == nil {
		return false
	}
	var gone *supervisor.GoneError
	if !errors.As(err, &gone) || gone.Index < first || gone.Index > last || !h.engines[gone.Index].dead {
		h.t.Fatalf("call to engines %d to %d: %v", first, last, err)
	}
	return true
}

// badPatch is refused and changes nothing.
func (h *history) badPatch() {
	h.note("bad patch")
	ctx, cancel := soon()
	defer cancel()
	_, err := h.Patch(ctx, config.Patch{{Key: "max_num_seqs", Raw: "5"}, {Key: "failure_injection_rate", Raw: "2"}})
	var refused *supervisor.RefusedError
	var gone *supervisor.GoneError
	if !errors.As(err, &refused) && !errors.As(err, &gone) {
		h.t.Fatalf("bad patch: %v, want a refusal", err)
	}
}

// resetStats sets the counters back: while everything is at rest, or while requests are on their way and the fleet itself says which of
// them it counted before.
func (h *history) resetStats(atRest bool) {
	h.note("reset the counters, at rest %t", atRest)
	if atRest {
		h.settle()
	}
	unsettled := h.unsettled()
	ctx, cancel := soon()
	defer cancel()
	if err := h.ResetStats(ctx); h.failed(err, 0, len(h.engines)-1) {
		return
	}
	for rank, e := range h.engines {
		h.returned(rank)
		e.base = e.raw
	}
	h.settle()
	for rank, n := range unsettled {
		if n > 0 {
			h.adoptBase(rank, n)
		}
	}
}

// storm has requests arrive while failures are switched on and off and counters read: each of them completes or fails.
func (h *history) storm() {
	rank := h.random.IntN(len(h.engines))
	e := h.engines[rank]
	h.settle()
	if e.dead || e.live.TimeToFirstToken == held || e.live.MaxModelLen > 0 || len(e.running) >= int(e.live.MaxNumSeqs) {
		return
	}
	h.note("engine %d: storm", rank)
	before := h.imbalance(rank)
	var others sync.WaitGroup
	faults := make(chan error, 64)
	others.Go(func() { faults <- h.flip(rank) })
	others.Go(func() { faults <- h.watch(rank, before) })
	for range 16 {
		h.numbers++
		r := &request{id: fmt.Sprintf("r-%d", h.numbers), prompt: 1, tokens: 3}
		h.deliver(rank, r)
		r.allowed = completed | failed
	}
	others.Wait()
	close(faults)
	for err := range faults {
		if err != nil {
			h.t.Fatalf("engine %d: storm: %v", rank, err)
		}
	}
	e.live.FailureInjectionRate, e.live.FailureTypes = 0, []string{config.FailLength}
	h.settle()
}

// flip switches failures on and off, and leaves them off.
func (h *history) flip(rank int) error {
	ctx, cancel := soon()
	defer cancel()
	for _, rate := range []float64{1, 0, 1, 0} {
		if _, err := h.PatchEngine(ctx, rank, failing(rate, config.FailLength).patch); err != nil {
			return err
		}
	}
	return nil
}

// imbalance is what is open by the counters less what is by the gauges: it moves with a reset and with nothing else.
func (h *history) imbalance(rank int) int64 {
	ctx, cancel := soon()
	defer cancel()
	s, err := h.EngineStats(ctx, rank)
	if err != nil {
		h.t.Fatalf("engine %d: stats: %v", rank, err)
	}
	return int64(s.Received - s.Completed - s.Failed - s.Aborted - s.Running - s.Waiting)
}

// watch reads an engine's counters again and again: they add up at any moment.
func (h *history) watch(rank int, want int64) error {
	ctx, cancel := soon()
	defer cancel()
	for range 8 {
		s, err := h.EngineStats(ctx, rank)
		if err != nil {
			return err
		}
		if got := int64(s.Received - s.Completed - s.Failed - s.Aborted - s.Running - s.Waiting); got != want {
			return fmt.Errorf("%+v: received less all others is %d, want %d", s, got, want)
		}
	}
	return nil
}
