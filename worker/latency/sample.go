package latency

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// The recorded requests are gathered in a grid of cells: what was alike in prompt length and in concurrency. Each bound is
// the least value of a bucket.
var (
	promptBounds      = []uint64{0, 65, 129, 257, 513, 1025, 2049, 4097, 8193, 16385, 32769}
	concurrencyBounds = []uint64{0, 2, 5, 7, 9, 17, 33, 65}
)

func bucket(bounds []uint64, n uint64) int {
	i, found := slices.BinarySearch(bounds, n)
	if found {
		return i
	}
	return i - 1
}

// pool is a set of durations that are drawn by their weights.
type pool struct {
	values []time.Duration
	upTo   []uint64 // sum of the weights up to and including this value
}

func (p *pool) add(ms float64, weight uint64) {
	if weight == 0 {
		return
	}
	total := p.weight() + weight
	if total < weight {
		return // beyond counting: the rest adds nothing to see
	}
	p.values = append(p.values, duration(ms))
	p.upTo = append(p.upTo, total)
}

func (p *pool) weight() uint64 {
	if len(p.upTo) == 0 {
		return 0
	}
	return p.upTo[len(p.upTo)-1]
}

func (p *pool) draw(random *rand.Rand) time.Duration {
	i, _ := slices.BinarySearch(p.upTo, random.Uint64N(p.weight())+1)
	return p.values[i]
}

// duration saturates far above any recorded time.
func duration(ms float64) time.Duration {
	const most = 24 * 365 * time.Hour
	if ms >= float64(most/time.Millisecond) {
		return most
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// grid holds a pool for each pair of buckets.
type grid [][]*pool

func newGrid() grid {
	g := make(grid, len(promptBounds))
	for i := range g {
		g[i] = make([]*pool, len(concurrencyBounds))
		for j := range g[i] {
			g[i][j] = &pool{}
		}
	}
	return g
}

func (g grid) cell(prompt, concurrency uint64) *pool {
	return g[bucket(promptBounds, prompt)][bucket(concurrencyBounds, concurrency)]
}

// fill puts the nearest pool that has anything into every empty cell. It reports false where all are empty.
func (g grid) fill() bool {
	full := newGrid()
	for i := range g {
		for j := range g[i] {
			if full[i][j] = g.nearest(i, j); full[i][j] == nil {
				return false
			}
		}
	}
	copy(g, full)
	return true
}

// nearest is by steps in the grid; of two as near, the one of the same prompt length comes first.
func (g grid) nearest(i, j int) *pool {
	var best *pool
	bestSteps, bestPrompt := 0, 0
	for x := range g {
		for y := range g[x] {
			prompt := distance(x, i)
			steps := prompt + distance(y, j)
			if len(g[x][y].values) == 0 || best != nil && (steps > bestSteps || steps == bestSteps && prompt >= bestPrompt) {
				continue
			}
			best, bestSteps, bestPrompt = g[x][y], steps, prompt
		}
	}
	return best
}

func distance(a, b int) int { return max(a-b, b-a) }

// Trace is the timing of a recorded engine. It is immutable and may be shared; an engine draws from it.
type Trace struct {
	firstTokens grid
	gaps        grid
}

type builder struct {
	records     int
	firstTokens grid
	gaps        grid
}

func (b *builder) add(r record) {
	if b.records == 0 {
		b.firstTokens, b.gaps = newGrid(), newGrid()
	}
	b.records++
	b.firstTokens.cell(*r.PromptTokens, r.concurrency()).add(*r.TTFT, 1)
	gaps := b.gaps.cell(*r.PromptTokens, r.concurrency())
	for _, gap := range r.ITL {
		gaps.add(gap, 1)
	}
	if s := r.ITLSummary; s != nil && len(r.ITL) == 0 {
		gaps.add(*s.Mean, *s.Count)
	}
}

func (b *builder) build() (*Trace, error) {
	if b.records == 0 {
		return nil, errors.New("it has no records")
	}
	if !b.gaps.fill() {
		return nil, errors.New("it has no inter-token latency data")
	}
	b.firstTokens.fill() // never empty: every record has one
	return &Trace{firstTokens: b.firstTokens, gaps: b.gaps}, nil
}

// FirstToken draws the time to first token of a recorded request of about this prompt length, at about this concurrency.
func (t *Trace) FirstToken(random *rand.Rand, promptTokens, running uint64) time.Duration {
	return t.firstTokens.cell(promptTokens, running).draw(random)
}

// Gap draws the time between two chunks of such a request.
func (t *Trace) Gap(random *rand.Rand, promptTokens, running uint64) time.Duration {
	return t.gaps.cell(promptTokens, running).draw(random)
}
