package engine

import (
	"math"
	"math/rand/v2"
	"time"
)

// Params is what can be changed while an engine runs. A set is immutable once it is in force: every request points to
// the one of its admission, which paces it to its end.
type Params struct {
	TTFT, TTFTStdDev time.Duration // from admission to the first token
	ITL, ITLStdDev   time.Duration // between two chunks
	PrefillOverhead  time.Duration // of every prefill, where TTFT and its deviation are 0
	PrefillPerToken  time.Duration // on top of it, for each prompt token
	PrefillStdDev    time.Duration
	LoadFactor       float64 // on all means when MaxSeqs requests run, at least 1
	MaxSeqs          uint64  // slots, at least 1
	MaxBatchedTokens uint64  // token budget of a step, at least 1
	MaxModelLen      uint64  // prompt and output tokens together, 0 = no limit
	FailureRate      float64 // share of arrivals that fail, 0 … 1
	FailureTypes     []Finish
}

// Latency is timing that was recorded rather than set. It draws from the stream it is given only.
type Latency interface {
	// FirstToken returns the time from admission to the first token of a request, while running requests run, itself
	// included.
	FirstToken(random *rand.Rand, promptTokens, running uint64) time.Duration
	// Gap returns the time between two chunks of such a request.
	Gap(random *rand.Rand, promptTokens, running uint64) time.Duration
}

// longest bounds every duration, so that no sum of an instant and a duration overflows: a hundred years.
const longest = 100 * 365 * 24 * time.Hour

func (p Params) clone() *Params {
	p.FailureTypes = append([]Finish(nil), p.FailureTypes...)
	return &p
}

// load is the factor on all means while running requests run: 1 for one request, LoadFactor for MaxSeqs of them or
// more, a straight line between.
func (p *Params) load(running uint64) float64 {
	if p.LoadFactor == 1 || p.MaxSeqs <= 1 || running <= 1 {
		return 1
	}
	f := 1 + (p.LoadFactor-1)*float64(running-1)/float64(p.MaxSeqs-1)
	return min(max(f, 1), p.LoadFactor)
}

func (p *Params) underLoad(d time.Duration, running uint64) time.Duration {
	if f := p.load(running); f != 1 {
		return duration(float64(d) * f)
	}
	return d
}

// firstTokenDelay draws the time from admission to the first token.
func (e *Engine) firstTokenDelay(r *Request) time.Duration {
	if e.cfg.Latency != nil && (r.Own == nil || !r.Own.FirstToken) {
		return e.scaled(e.cfg.Latency.FirstToken(e.latency, r.PromptTokens, e.running))
	}
	p := r.pace
	if p.TTFT == 0 && p.TTFTStdDev == 0 {
		mean := duration(float64(p.PrefillOverhead) + float64(r.PromptTokens)*float64(p.PrefillPerToken))
		return e.scaled(e.draw(r, p.underLoad(mean, e.running), p.PrefillStdDev))
	}
	return e.scaled(e.draw(r, p.underLoad(p.TTFT, e.running), p.TTFTStdDev))
}

// gap draws the time from one chunk of r to the next, when the first of them falls due.
func (e *Engine) gap(r *Request) time.Duration {
	if e.cfg.Latency != nil && (r.Own == nil || !r.Own.Gaps) {
		return e.scaled(e.cfg.Latency.Gap(e.latency, r.PromptTokens, e.running))
	}
	return e.scaled(e.draw(r, r.pace.underLoad(r.pace.ITL, e.running), r.pace.ITLStdDev))
}

// draw returns a normal deviate kept within 0.3 and 1.7 of its mean. Without a deviation nothing is drawn.
func (e *Engine) draw(r *Request, mean, deviation time.Duration) time.Duration {
	if mean == 0 || deviation == 0 {
		return mean
	}
	random := e.latency
	if r.Own != nil {
		random = r.random
	}
	m := float64(mean)
	x := m + float64(deviation)*random.NormFloat64()
	return duration(min(max(x, 0.3*m), 1.7*m))
}

// scaled turns a simulated duration into one of the clock.
func (e *Engine) scaled(d time.Duration) time.Duration {
	if e.cfg.TimeScale == 1 {
		return min(d, longest)
	}
	return duration(float64(d) / e.cfg.TimeScale)
}

// duration rounds to whole nanoseconds and saturates at longest.
func duration(ns float64) time.Duration {
	if ns >= float64(longest) {
		return longest
	}
	return time.Duration(math.Round(ns))
}

// Milliseconds is the duration of a whole number of them, saturated at a hundred years.
func Milliseconds(n uint64) time.Duration {
	if n >= uint64(longest/time.Millisecond) {
		return longest
	}
	return time.Duration(n) * time.Millisecond
}
