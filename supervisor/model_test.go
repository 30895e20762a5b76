package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
)

// model is what a fleet should be after a history: the rules of the package, without a process.
type model struct {
	changes  uint64
	launched config.Live
	engines  []modelEngine
}

type modelEngine struct {
	live       config.Live
	generation uint64
	stats      ipc.Stats
	lost       uint64
	restarts   uint64
	sticky     bool // refuses changes
}

// change applies f to the engines from first to last, all or none. It reports false where one of them refuses.
func (m *model) change(first, last int, f func(e *modelEngine)) bool {
	m.changes++
	for _, e := range m.engines[first : last+1] {
		if e.sticky {
			return false
		}
	}
	for i := first; i <= last; i++ {
		f(&m.engines[i])
		m.engines[i].generation = m.changes
	}
	return true
}

// die is a process that is killed, and the next one, which knows nothing of stickiness.
func (e *modelEngine) die() {
	e.lost += e.stats.Running
	e.stats.Failed += e.stats.Running
	e.stats.Running = 0
	e.restarts++
	e.sticky = false
}

func (m *model) sum() ipc.Stats {
	var s ipc.Stats
	for _, e := range m.engines {
		s = s.Add(e.stats)
	}
	return s
}

// history is a fleet, its model, and what may happen to both.
type history struct {
	r *rig
	m model
}

const modelEngines = 3

// TestModel takes fleets through random histories of changes, resets, requests and deaths and compares them with a model
// after every step.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// Every death of a history is within a minute, and all are forgiven.
		timing := func(t *timing) { t.firstBackoff, t.lastBackoff, t.deathsAllowed = 1, 1, 1000 }
		launched := func(cfg *config.Config) { onFailure(cfg); cfg.InterTokenLatency, cfg.FailureInjectionRate = 3, 0.25 }
		r := launch(t, modelEngines, setup{roles: []string{good}, config: launched, timing: timing})
		h := history{r, model{launched: r.cfg.Live, engines: make([]modelEngine, modelEngines)}}
		for i := range h.m.engines {
			h.m.engines[i].live = r.cfg.Live
		}
		defer func() { r.Stop(nil); _ = r.end() }()
		rt.Repeat(map[string]func(*rapid.T){
			"":           h.compare,
			"patch":      h.patch,
			"patch one":  h.patchOne,
			"bad patch":  h.badPatch,
			"reset":      h.resetConfig,
			"stick":      h.stick,
			"zero stats": h.resetStats,
			"arrive":     h.arrive,
			"finish":     h.finish,
			"abort":      h.abort,
			"kill":       h.kill,
		})
	})
}

var ctx = context.Background()

func engineIndex(t *rapid.T) int { return rapid.IntRange(0, modelEngines-1).Draw(t, "engine") }

// draw returns a patch and what it does.
func draw(t *rapid.T) (config.Patch, func(*config.Live)) {
	n := uint64(rapid.IntRange(1, 9).Draw(t, "value"))
	raw := strconv.FormatUint(n, 10)
	switch rapid.IntRange(0, 2).Draw(t, "key") {
	case 0:
		return itl(raw), func(l *config.Live) { l.InterTokenLatency = n }
	case 1:
		return config.Patch{{Key: "failure_injection_rate", Raw: "0." + raw}, {Key: "max_num_seqs", Raw: raw}},
			func(l *config.Live) { l.FailureInjectionRate, l.MaxNumSeqs = float64(n)/10, n }
	default:
		return config.Patch{{Key: "failure_types", Raw: `["length"]`}}, func(l *config.Live) { l.FailureTypes = []string{"length"} }
	}
}

// outcome wants an error exactly where the model refuses.
func outcome(t *rapid.T, err error, done bool) {
	var refused *RefusedError
	if done && err != nil || !done && !errors.As(err, &refused) {
		t.Fatalf("change: error %v, want success %t", err, done)
	}
}

func (h *history) patch(t *rapid.T) {
	p, f := draw(t)
	_, err := h.r.Patch(ctx, p)
	outcome(t, err, h.m.change(0, modelEngines-1, func(e *modelEngine) { f(&e.live) }))
}

func (h *history) patchOne(t *rapid.T) {
	i := engineIndex(t)
	p, f := draw(t)
	_, err := h.r.PatchEngine(ctx, i, p)
	outcome(t, err, h.m.change(i, i, func(e *modelEngine) { f(&e.live) }))
}

func (h *history) badPatch(t *rapid.T) {
	_, err := h.r.Patch(ctx, config.Patch{{Key: "max_num_seqs", Raw: "5"}, {Key: "failure_injection_rate", Raw: "2"}})
	h.m.changes++
	outcome(t, err, false)
}

func (h *history) resetConfig(t *rapid.T) {
	_, err := h.r.ResetConfig(ctx)
	outcome(t, err, h.m.change(0, modelEngines-1, func(e *modelEngine) { e.live = h.m.launched }))
}

func (h *history) resetStats(t *rapid.T) {
	err := h.r.ResetStats(ctx)
	outcome(t, err, h.m.change(0, modelEngines-1, func(e *modelEngine) { e.stats = ipc.Stats{Running: e.stats.Running} }))
}

// do makes a call that only puppets know.
func (h *history) do(t *rapid.T, index int, op string, n uint64) {
	if _, err := h.r.call(ctx, index, ipc.Call{Op: op, Timeout: n}); err != nil {
		t.Fatalf("engine %d: %s: %v", index, op, err)
	}
}

func (h *history) stick(t *rapid.T) {
	i := engineIndex(t)
	e := &h.m.engines[i]
	e.sticky = !e.sticky
	h.do(t, i, opStick, map[bool]uint64{true: 1}[e.sticky])
}

func (h *history) arrive(t *rapid.T) {
	i, n := engineIndex(t), rapid.Uint64Range(1, 5).Draw(t, "requests")
	h.do(t, i, opArrive, n)
	h.m.engines[i].stats.Received += n
	h.m.engines[i].stats.Running += n
}

// leave has some of an engine's running requests end, and returns how many.
func (h *history) leave(t *rapid.T, op string) (*modelEngine, uint64) {
	i := engineIndex(t)
	e := &h.m.engines[i]
	n := rapid.Uint64Range(0, e.stats.Running).Draw(t, "requests")
	h.do(t, i, op, n)
	e.stats.Running -= n
	return e, n
}

func (h *history) finish(t *rapid.T) {
	e, n := h.leave(t, opFinish)
	e.stats.Completed += n
}

func (h *history) abort(t *rapid.T) {
	e, n := h.leave(t, opAbort)
	e.stats.Aborted += n
}

func (h *history) kill(t *rapid.T) {
	i := engineIndex(t)
	e := &h.m.engines[i]
	e.die()
	h.r.kill(i, syscall.SIGKILL)
	h.r.await("the engine is back", func() bool { s := h.r.look(i); return s.Restarts == e.restarts && s.State == StateReady })
}

func (h *history) compare(t *rapid.T) {
	for i, e := range h.m.engines {
		live, err := h.r.EngineConfig(ctx, i)
		if diff := cmp.Diff(e.live, live); err != nil || diff != "" {
			t.Fatalf("engine %d: configuration: %v (-model +fleet):\n%s", i, err, diff)
		}
		s := h.r.look(i)
		got := fmt.Sprint(s.Stats, s.Generation, s.Lost, s.Restarts, s.State)
		if want := fmt.Sprint(e.stats, e.generation, e.lost, e.restarts, StateReady); got != want {
			t.Fatalf("engine %d: counters, generation, lost, restarts, state: %s, want %s", i, got, want)
		}
	}
	stats, err := h.r.Stats(ctx)
	if diff := cmp.Diff(h.m.sum(), stats); err != nil || diff != "" {
		t.Fatalf("sum of counters: %v (-model +fleet):\n%s", err, diff)
	}
}
