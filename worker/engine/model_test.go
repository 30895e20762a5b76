package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestEngine_Invariants drives an engine with random histories and checks, after every step, what must hold in any.
func TestEngine_Invariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"add":     m.add,
			"abort":   m.abort,
			"patch":   m.patch,
			"advance": m.advance,
			"slow":    m.slow,
			"fast":    m.fast,
			"pause":   m.pause,
			"resume":  func(*rapid.T) { m.engine.Resume(m.now) },
			"arm":     m.arm,
			"disarm":  m.disarm,
			"":        m.check,
		})
		m.finish(t)
	})
}

// model is what a frontend knows of an engine: which requests it gave, and what came back.
type model struct {
	engine *Engine
	now    Time
	next   int
	open   map[string]*Request
	got    map[string]uint64
	last   map[string]Time // when a request's last chunk came
	stepAt Time
	full   map[uint32]bool
	faults []*Fault // all there ever were
	errs   []string
}

func newModel(t *rapid.T) *model {
	m := &model{open: map[string]*Request{}, got: map[string]uint64{}, last: map[string]Time{}, full: map[uint32]bool{}}
	cfg := testConfig()
	cfg.ChunkSize = rapid.Uint64Range(1, 3).Draw(t, "chunk")
	cfg.LongPrefillThreshold = rapid.Uint64Range(0, 3).Draw(t, "threshold")
	cfg.MaxLoras = rapid.Uint64Range(0, 2).Draw(t, "loras")
	cfg.Priority = rapid.Bool().Draw(t, "priority")
	cfg.Granularity = rapid.SampledFrom([]time.Duration{0, 100 * time.Microsecond}).Draw(t, "grid")
	cfg.Params = drawParams(t)
	m.engine = New(cfg, m)
	return m
}

func drawParams(t *rapid.T) Params {
	ms := func(name string) time.Duration {
		return time.Duration(rapid.IntRange(0, 4).Draw(t, name)) * time.Millisecond
	}
	return Params{
		TTFT: ms("ttft"), TTFTStdDev: ms("ttft-dev"), ITL: ms("itl"), ITLStdDev: ms("itl-dev"),
		LoadFactor: float64(rapid.IntRange(1, 3).Draw(t, "load")), MaxSeqs: rapid.Uint64Range(1, 5).Draw(t, "seqs"),
		MaxBatchedTokens: rapid.Uint64Range(1, 9).Draw(t, "budget"), MaxModelLen: rapid.SampledFrom([]uint64{0, 12}).Draw(t, "len"),
		FailureRate: rapid.SampledFrom([]float64{0, 0, 0.3}).Draw(t, "rate"), FailureTypes: []Finish{Error, Length, Repetition},
	}
}

func (m *model) add(t *rapid.T) {
	r := &Request{
		ID:           fmt.Sprint(m.next),
		Client:       rapid.Uint32Range(0, 2).Draw(t, "client"),
		PromptTokens: rapid.Uint64Range(0, 9).Draw(t, "prompt"),
		MaxTokens:    rapid.Uint64Range(0, 6).Draw(t, "max"),
		Priority:     rapid.Int64Range(-1, 1).Draw(t, "priority"),
		Adapter:      rapid.SampledFrom([]string{"", "", "a", "b", "c"}).Draw(t, "adapter"),
		StopAfter:    rapid.SampledFrom([]uint64{0, 0, 2}).Draw(t, "stop"),
		MaxHeld:      rapid.SampledFrom([]uint64{0, 0, 2}).Draw(t, "held"),
		Pooling:      rapid.IntRange(0, 9).Draw(t, "pooling") == 0,
		AbortAtOnce:  rapid.IntRange(0, 9).Draw(t, "abort at once") == 0,
	}
	m.next++
	m.open[r.ID] = r
	m.engine.Add(m.now, r)
}

func (m *model) abort(t *rapid.T) {
	m.engine.Abort(m.now, []string{fmt.Sprint(rapid.IntRange(0, max(1, m.next)).Draw(t, "id"))})
}

func (m *model) patch(t *rapid.T) { m.engine.SetParams(drawParams(t)) }

// advance moves the clock, and steps as often as the engine asks for it, or late.
func (m *model) advance(t *rapid.T) {
	until := m.now + time.Duration(rapid.IntRange(0, 5000).Draw(t, "µs"))*time.Microsecond
	if rapid.Bool().Draw(t, "late") {
		m.now = until
	}
	for steps := 0; ; steps++ {
		next := m.step()
		if next > until {
			break
		}
		m.now = max(m.now, next)
		if steps > 10_000 {
			t.Fatalf("the engine never rests: it asks for %v at %v", next, m.now)
		}
	}
	m.now = until
}

func (m *model) step() Time {
	m.stepAt++
	next := m.engine.Step(m.now)
	if next < m.now {
		m.errorf("the next step is wanted at %v, before %v", next, m.now)
	}
	return next
}

func (m *model) slow(t *rapid.T) { m.full[rapid.Uint32Range(0, 2).Draw(t, "client")] = true }

func (m *model) fast(t *rapid.T) {
	client := rapid.Uint32Range(0, 2).Draw(t, "client")
	delete(m.full, client)
	m.engine.Release(client)
}

func (m *model) pause(t *rapid.T) {
	mode := PauseMode(rapid.IntRange(int(PauseAbort), int(PauseKeep)).Draw(t, "mode"))
	m.engine.Pause(m.now, mode, rapid.Bool().Draw(t, "refuse"))
}

// arm draws any fault but a crash, after which there is nothing to check.
func (m *model) arm(t *rapid.T) {
	f := &Fault{
		Kind:        rapid.SampledFrom([]FaultKind{FaultError, FaultLength, FaultRepetition, FaultStall, FaultHang}).Draw(t, "kind"),
		Count:       rapid.Uint64Range(0, 3).Draw(t, "count"),
		Duration:    time.Duration(rapid.IntRange(0, 9).Draw(t, "duration")) * time.Millisecond,
		AfterTokens: rapid.Uint64Range(0, 4).Draw(t, "after"),
		Delay:       time.Duration(rapid.IntRange(0, 3).Draw(t, "delay")) * time.Millisecond,
	}
	if f.Kind == FaultHang {
		f.Count = 0
	}
	m.faults = append(m.faults, f)
	m.engine.Arm(m.now, f)
}

func (m *model) disarm(t *rapid.T) {
	if len(m.faults) > 0 {
		m.engine.Disarm(m.now, rapid.SampledFrom(m.faults).Draw(t, "fault"))
	}
}

// checkFaults finds faults that struck too often, and places in them that nobody has.
func (m *model) checkFaults() {
	var applied [FaultKinds]uint64
	booked := map[*Fault]uint64{}
	for _, r := range m.engine.requests {
		for _, f := range r.faults {
			booked[f]++
		}
	}
	for _, f := range m.faults {
		applied[f.Kind] += f.Applied
		if f.Count > 0 && f.Applied+f.booked > f.Count {
			m.errorf("a fault for %d requests struck %d and waits for %d", f.Count, f.Applied, f.booked)
		}
		if f.booked != booked[f] {
			m.errorf("a fault waits for %d requests, of which there are %d", f.booked, booked[f])
		}
	}
	if applied != m.engine.counts.Faults {
		m.errorf("counts of faults %v; they add up to %v", m.engine.counts.Faults, applied)
	}
}

// checkAside finds requests that wait aside after their end, which would be kept for as long as others wait there.
func (m *model) checkAside() {
	e := m.engine
	var waiting int
	held := map[uint32]int{}
	for _, r := range e.requests {
		if r.state == blocked {
			waiting++
		}
		if r.held {
			held[r.Client]++
		}
	}
	if len(e.blocked) != waiting {
		m.errorf("%d requests are set aside for an adapter, want %d", len(e.blocked), waiting)
	}
	for i, c := range e.clients {
		if len(c.held)-c.gone != held[uint32(i)] || 2*c.gone > len(c.held) {
			m.errorf("client %d: %d requests are held, %d of them gone, want %d and no more gone than that", i, len(c.held), c.gone, held[uint32(i)])
		}
	}
}

func (m *model) check(t *rapid.T) {
	e := m.engine
	m.checkFaults()
	m.checkAside()
	var running, decoding, backlog, blocks uint64
	adapters := map[string]bool{}
	for _, r := range e.requests {
		if r.state != queued && r.state != blocked {
			running++
			blocks += r.blocks
			if r.Adapter != "" {
				adapters[r.Adapter] = true
			}
		}
		if r.decodes {
			decoding++
		}
		backlog += r.share
		if m.open[r.ID] != r {
			m.errorf("request %s is kept after its end", r.ID)
		}
	}
	if running != e.running || decoding != e.decoding || backlog != e.backlog {
		m.errorf("running %d, decoding %d, backlog %d; the requests add up to %d, %d, %d", e.running, e.decoding, e.backlog, running, decoding, backlog)
	}
	if blocks != e.blocks || len(adapters) != len(e.adapters) || e.cfg.MaxLoras > 0 && uint64(len(adapters)) > e.cfg.MaxLoras {
		m.errorf("%d blocks and adapters %v; the requests add up to %d and %v, at most %d adapters", e.blocks, e.adapters, blocks, adapters, e.cfg.MaxLoras)
	}
	if busy := e.Usage() > 0; busy != (running > 0) {
		m.errorf("cache usage %v with %d running", e.Usage(), running)
	}
	if running+e.Waiting() != uint64(len(m.open)) {
		m.errorf("%d running and %d waiting of %d open requests", running, e.Waiting(), len(m.open))
	}
	c := e.counts
	if ended := c.Completed + c.Failed + c.Aborted; c.Received != uint64(m.next) || c.Received-ended != uint64(len(m.open)) {
		m.errorf("counts %+v with %d requests sent and %d open", c, m.next, len(m.open))
	}
	if len(m.errs) > 0 {
		t.Fatal(m.errs)
	}
}

// finish lets everything end, and finds what is left.
func (m *model) finish(t *rapid.T) {
	m.engine.Resume(m.now)
	for _, f := range m.faults {
		m.engine.Disarm(m.now, f)
	}
	for client := range uint32(3) {
		delete(m.full, client)
		m.engine.Release(client)
	}
	for next := m.step(); next != Never; next = m.step() {
		m.now = max(m.now, next)
	}
	m.check(t)
	if len(m.open) > 0 || !m.engine.Idle() || len(m.engine.prefilling) > 0 || !m.engine.due.empty() || len(m.engine.ready) > 0 {
		t.Fatalf("%d requests never ended", len(m.open))
	}
}

func (m *model) errorf(format string, args ...any) {
	m.errs = append(m.errs, fmt.Sprintf(format, args...))
}

func (m *model) Queued(*Request) {}

func (m *model) Admit(r *Request) {
	if m.engine.running > m.engine.params.MaxSeqs {
		m.errorf("%s is admitted as number %d of %d slots", r.ID, m.engine.running, m.engine.params.MaxSeqs)
	}
}

func (m *model) Late(by Time, n int) {
	if by < 0 || n < 1 {
		m.errorf("%d chunks late by %v, want at least one and not before its time", n, by)
	}
}

func (m *model) Full(client uint32) bool { return m.full[client] }

// Chunk checks that tokens come once a step, never too early and never too many.
func (m *model) Chunk(r *Request, tokens []uint32, finish Finish, first bool) {
	if m.full[r.Client] {
		m.errorf("%s: tokens for a client that is full", r.ID)
	}
	if m.engine.Hung() {
		m.errorf("%s: tokens while the engine hangs", r.ID)
	}
	if at, ok := m.last[r.ID]; ok && at == m.stepAt {
		m.errorf("%s: two chunks in one step", r.ID)
	}
	m.last[r.ID] = m.stepAt
	if most := max(r.MaxHeld, m.engine.cfg.ChunkSize); r.MaxHeld > 0 && uint64(len(tokens)) > most {
		m.errorf("%s: %d tokens in one output, want at most %d", r.ID, len(tokens), most)
	}
	if first != (m.got[r.ID] == 0) || first && m.now < r.Admitted {
		m.errorf("%s: first chunk is marked %v after %d tokens", r.ID, first, m.got[r.ID])
	}
	m.got[r.ID] += uint64(len(tokens))
	m.checkEnd(r, finish)
	if finish != NotFinished {
		m.end(r)
	}
}

func (m *model) checkEnd(r *Request, finish Finish) {
	want, end := r.MaxTokens, Length
	if r.StopAfter > 0 && r.StopAfter <= want {
		want, end = r.StopAfter, Stop
	}
	if r.Pooling {
		want, end = 0, Stop
	}
	done := m.got[r.ID] == want
	if done != (finish == end) || !done && finish != NotFinished || m.got[r.ID] > want {
		m.errorf("%s: %d of %d tokens, finish %d", r.ID, m.got[r.ID], want, finish)
	}
}

func (m *model) End(r *Request, finish Finish, cause Cause) {
	if finish == NotFinished {
		m.errorf("%s ends without a reason", r.ID)
	}
	if got := m.got[r.ID]; cause == Injected && got > 0 && !m.explained(finish, got) {
		m.errorf("%s ends with %d after %d tokens, which no fault asked for", r.ID, finish, got)
	}
	m.end(r)
}

// explained says that a fault has a request end like that.
func (m *model) explained(finish Finish, tokens uint64) bool {
	return slices.ContainsFunc(m.faults, func(f *Fault) bool {
		return f.Kind.fatal() && f.Kind.finish() == finish && f.AfterTokens == tokens && f.Applied > 0
	})
}

func (m *model) end(r *Request) {
	if m.open[r.ID] != r {
		m.errorf("%s ends twice", r.ID)
	}
	delete(m.open, r.ID)
}
