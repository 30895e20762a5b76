package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// recorder keeps the times and tokens of chunks.
type recorder struct {
	engine *Engine
	now    Time
	first  []time.Duration // from admission
	gaps   []time.Duration
	ends   map[Finish]int
	tokens map[string][]uint32
	last   map[string]Time
}

func newRecorder(cfg Config) *recorder {
	r := &recorder{ends: map[Finish]int{}, tokens: map[string][]uint32{}, last: map[string]Time{}}
	r.engine = New(cfg, r)
	return r
}

// run steps until the engine is idle.
func (r *recorder) run() {
	for next := r.engine.Step(r.now); next != Never; next = r.engine.Step(r.now) {
		r.now = next
	}
}

func (r *recorder) Queued(*Request)                   {}
func (r *recorder) Admit(*Request)                    {}
func (r *recorder) Late(Time, int)                    {}
func (r *recorder) Full(uint32) bool                  { return false }
func (r *recorder) End(_ *Request, f Finish, _ Cause) { r.ends[f]++ }
func (r *recorder) Chunk(q *Request, tokens []uint32, f Finish, first bool) {
	if first {
		r.first = append(r.first, r.now-q.Admitted)
	} else {
		r.gaps = append(r.gaps, r.now-r.last[q.ID])
	}
	r.last[q.ID] = r.now
	r.tokens[q.ID] = append(r.tokens[q.ID], tokens...)
	if f != NotFinished {
		r.ends[f]++
	}
}

func mean(d []time.Duration) float64 {
	var sum float64
	for _, x := range d {
		sum += float64(x)
	}
	return sum / float64(len(d))
}

func deviation(d []time.Duration) float64 {
	m, sum := mean(d), 0.0
	for _, x := range d {
		sum += (float64(x) - m) * (float64(x) - m)
	}
	return math.Sqrt(sum / float64(len(d)))
}

func ids(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = string(rune('a'+i%26)) + time.Duration(i).String()
	}
	return list
}

func TestEngine_Deviations(t *testing.T) {
	cfg := testConfig()
	cfg.Params.TTFT, cfg.Params.TTFTStdDev = 100*time.Millisecond, 10*time.Millisecond
	cfg.Params.ITL, cfg.Params.ITLStdDev = 20*time.Millisecond, 50*time.Millisecond
	cfg.Params.MaxSeqs = 1
	r := newRecorder(cfg)
	for _, id := range ids(4000) {
		r.engine.Add(0, &Request{ID: id, PromptTokens: 1, MaxTokens: 6})
	}
	r.run()
	if m, d := mean(r.first), deviation(r.first); math.Abs(m-100e6) > 1e6 || math.Abs(d-10e6) > 1e6 {
		t.Errorf("time to first token %.2f ± %.2f ms, want 100 ± 10", m/1e6, d/1e6)
	}
	// A deviation far above the mean: half of the draws sit at the bounds.
	low, high := slices.Min(r.gaps), slices.Max(r.gaps)
	if low != 6*time.Millisecond || high != 34*time.Millisecond {
		t.Errorf("gaps from %v to %v, want 6 ms (0.3 × mean) to 34 ms (1.7 × mean)", low, high)
	}
	if m := mean(r.gaps); math.Abs(m-20e6) > 0.5e6 {
		t.Errorf("mean gap %.2f ms, want 20: the bounds are symmetric", m/1e6)
	}
}

// For an hour every step comes late, by up to 3 ms, and a gap of 7 ms is none of the grid: the last token is due when it would
// be if no step had ever been late.
func TestEngine_NoDrift(t *testing.T) {
	const hour = uint64(time.Hour / (7 * time.Millisecond))
	cfg := testConfig()
	cfg.Granularity = 100 * time.Microsecond
	cfg.Params.TTFT, cfg.Params.ITL = 50*time.Millisecond, 7*time.Millisecond
	r := newRecorder(cfg)
	request := &Request{ID: "a", PromptTokens: 1, MaxTokens: hour}
	r.engine.Add(0, request)
	rng := rand.New(rand.NewPCG(1, 2))
	var due Time
	for next := r.engine.Step(0); next != Never; next = r.engine.Step(r.now) {
		due, r.now = next, next+Time(rng.Int64N(int64(3*time.Millisecond)))
	}
	if want := cfg.Params.TTFT + Time(hour-1)*cfg.Params.ITL; due != want || r.ends[Length] != 1 {
		t.Errorf("the last token was due at %v, want %v", due, want)
	}
}

func TestEngine_FailureRate(t *testing.T) {
	const requests = 100_000
	for _, rate := range []float64{0, 0.25, 1} {
		cfg := testConfig()
		cfg.Params.FailureRate = rate
		cfg.Params.FailureTypes = []Finish{Error, Error, Error, Repetition}
		r := newRecorder(cfg)
		for _, id := range ids(requests) {
			r.engine.Add(0, &Request{ID: id, PromptTokens: 1, MaxTokens: 1})
			r.engine.Step(0)
		}
		r.run()
		failed := float64(r.engine.Counts().Failed) / requests
		if exact := rate == 0 || rate == 1; exact && failed != rate || math.Abs(failed-rate) > 0.01 {
			t.Errorf("rate %v: a share of %v failed", rate, failed)
		}
		if share := float64(r.ends[Repetition]) / max(1, float64(r.engine.Counts().Failed)); rate > 0 && math.Abs(share-0.25) > 0.02 {
			t.Errorf("rate %v: a share of %v failed by repetition, want a quarter, as of the list", rate, share)
		}
	}
}

// What is switched off draws nothing: tokens and times are those of an engine that never had it.
func TestEngine_StreamsAreIndependent(t *testing.T) {
	play := func(change func(*Config), meddle func(*Engine)) *recorder {
		cfg := testConfig()
		cfg.Seed = 1
		cfg.Params.TTFT, cfg.Params.TTFTStdDev = 10*time.Millisecond, 3*time.Millisecond
		change(&cfg)
		r := newRecorder(cfg)
		meddle(r.engine)
		for _, id := range ids(50) {
			r.engine.Add(0, &Request{ID: id, PromptTokens: 1, MaxTokens: 20})
		}
		r.run()
		return r
	}
	nothing := func(*Config) {}
	plain := play(nothing, func(*Engine) {})
	failing := play(nothing, func(e *Engine) {
		p := *e.params
		p.FailureRate = 1
		e.SetParams(p)
		for _, id := range ids(1000) {
			e.Add(0, &Request{ID: id, MaxTokens: 1})
		}
		p.FailureRate = 0
		e.SetParams(p)
	})
	if !slices.Equal(plain.first, failing.first) {
		t.Error("failures before change the times of requests after them")
	}
	wide := play(func(c *Config) { c.ChunkSize = 7 }, func(*Engine) {})
	for id, tokens := range plain.tokens {
		if !slices.Equal(tokens, failing.tokens[id]) || !slices.Equal(tokens, wide.tokens[id]) {
			t.Errorf("%s: tokens depend on more than seed, index and id", id)
		}
	}
	other := play(func(c *Config) { c.Index = 1 }, func(*Engine) {})
	if slices.Equal(plain.tokens[ids(1)[0]], other.tokens[ids(1)[0]]) {
		t.Error("two engines give the same tokens to the same id")
	}
}

// Numbers at the ends of their ranges neither overflow nor hang.
func TestEngine_ExtremeParams(t *testing.T) {
	const huge = math.MaxUint64
	cfg := testConfig()
	cfg.TimeScale = math.SmallestNonzeroFloat64
	cfg.Params = Params{
		TTFT: Milliseconds(huge), ITL: Milliseconds(huge), ITLStdDev: Milliseconds(huge), LoadFactor: math.MaxFloat64,
		PrefillPerToken: Milliseconds(huge), MaxSeqs: huge, MaxBatchedTokens: huge, MaxModelLen: huge, FailureTypes: []Finish{Error},
	}
	r := newRecorder(cfg)
	r.engine.Add(0, &Request{ID: "a", PromptTokens: huge, MaxTokens: 1})
	r.engine.Add(0, &Request{ID: "b", PromptTokens: 1, MaxTokens: huge - 1})
	r.engine.Add(0, &Request{ID: "c", PromptTokens: 1, MaxTokens: 2})
	if next := r.engine.Step(0); next != longest {
		t.Errorf("first token due at %v, want %v", next, longest)
	}
	if next := r.engine.Step(longest); next <= longest || next == Never {
		t.Errorf("second token due at %v, want after %v", next, longest)
	}
	if got := r.engine.Counts(); got.Failed != 1 {
		t.Errorf("%d failed, want the one that is too long for any limit", got.Failed)
	}
}

// discard takes outputs and does nothing.
type discard struct{ tokens int }

func (*discard) Queued(*Request)                                       {}
func (*discard) Admit(*Request)                                        {}
func (*discard) Late(Time, int)                                        {}
func (*discard) Full(uint32) bool                                      { return false }
func (*discard) End(*Request, Finish, Cause)                           {}
func (d *discard) Chunk(_ *Request, tokens []uint32, _ Finish, _ bool) { d.tokens += len(tokens) }

// BenchmarkStep_ZeroLatency is a step of 512 requests that are always due.
func BenchmarkStep_ZeroLatency(b *testing.B) { benchmarkStep(b, Params{}) }

// BenchmarkStep_Paced is as many requests whose chunks fall due one after the other.
func BenchmarkStep_Paced(b *testing.B) { benchmarkStep(b, Params{ITL: 20 * time.Millisecond}) }

func benchmarkStep(b *testing.B, p Params) {
	p.LoadFactor, p.MaxSeqs, p.MaxBatchedTokens = 1, 512, 1<<20
	cfg := testConfig()
	cfg.Params, cfg.Granularity = p, 100*time.Microsecond
	var sink discard
	e := New(cfg, &sink)
	now := Time(0)
	for i, id := range ids(512) {
		now = Time(i) * 39 * time.Microsecond
		e.Add(now, &Request{ID: id, PromptTokens: 1, MaxTokens: math.MaxUint64})
		e.Step(now)
	}
	sink.tokens = 0
	b.ReportAllocs()
	b.ResetTimer()
	for sink.tokens < b.N {
		now = max(now, e.Step(now))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(sink.tokens), "ns/token")
}

// The path that every token takes makes no garbage.
func TestStep_DoesNotAllocate(t *testing.T) {
	cfg := testConfig()
	var sink discard
	e := New(cfg, &sink)
	for _, id := range ids(64) {
		e.Add(0, &Request{ID: id, PromptTokens: 1, MaxTokens: math.MaxUint64})
	}
	for range 10 {
		e.Step(0)
	}
	if n := testing.AllocsPerRun(100, func() { e.Step(0) }); n > 0 {
		t.Errorf("%v allocations a step, want none", n)
	}
}
