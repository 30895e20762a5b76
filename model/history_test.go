package model

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"
)

// history is one random walk over a fleet, and how it went so far.
type history struct {
	*rig
	t      *testing.T
	random *rand.Rand
	steps  []string
	past   []string // ids of requests that have ended
}

// seedsEngines is how many engines the history of a seed has.
func seedsEngines(seed uint64) int { return 1 + int(seed%maxEngines) }

// plan is what the history of a seed does to its fleet.
type plan struct {
	kills  bool   // workers
	drains bool   // the fleet, in the end
	drain  uint64 // seconds that requests have to finish then
}

func planOf(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 1))
	p := plan{kills: *killEvery > 0 && r.Uint64N(*killEvery) == 0, drains: r.Uint64N(50) == 0}
	if p.drains {
		p.drain = 60 * r.Uint64N(2)
	}
	return p
}

// TestHistories plays histories on fleets of every size, side by side, and compares each with its model.
func TestHistories(t *testing.T) {
	for engines := 1; engines <= maxEngines; engines++ {
		t.Run(fmt.Sprintf("%d engines", engines), func(t *testing.T) {
			t.Parallel()
			played := 0
			defer func() { t.Logf("%d histories from seed %d on", played, *seed) }()
			playAll(t, engines, &played)
		})
	}
}

// playAll plays the histories of one size, on one fleet for as long as it lasts.
func playAll(t *testing.T, engines int, played *int) {
	var r *rig
	for n := *seed; n < *seed+uint64(*histories); n++ {
		if seedsEngines(n) != engines {
			continue
		}
		p := planOf(n)
		if r != nil && p.drain > 0 {
			r.end(t) // it needs one that is as patient
			r = nil
		}
		if r == nil {
			r = raise(t, engines, p.drain)
		}
		if usedUp := r.play(t, n); usedUp {
			r.end(t)
			r = nil
		}
		*played++
	}
	if r != nil {
		r.end(t)
	}
}

// play plays one history. It reports that the fleet is not good for another.
func (r *rig) play(t *testing.T, seed uint64) (usedUp bool) {
	t.Helper()
	h := &history{rig: r, t: t, random: rand.New(rand.NewPCG(seed, 0))}
	defer func() {
		if t.Failed() {
			t.Logf("seed %d: to play it alone: make model HISTORIES=1 SEED=%d\n%s", seed, seed, strings.Join(h.steps, "\n"))
		}
	}()
	h.begin()
	p := planOf(seed)
	for range 10 + h.random.IntN(31) {
		h.step(p.kills)
	}
	h.compare()
	h.reviveAll()
	if p.drains {
		h.drain(p.drain > 0)
		return true
	}
	h.finish()
	return p.kills // a fleet doesn't restart a worker for ever
}

// begin makes any fleet like a new one.
func (h *history) begin() {
	h.resetConfig()
	h.resetStats(true)
	h.compare()
	h.witness.forget()
}

// finish gives up what is open, so that the next history finds a fleet at rest: then all that was received has ended.
func (h *history) finish() {
	for rank, e := range h.engines {
		for _, r := range e.open() {
			h.abort(rank, r.id)
		}
	}
	h.compare()
	for rank, e := range h.engines {
		if n := len(e.open()); n > 0 {
			h.t.Fatalf("engine %d: %d requests are left", rank, n)
		}
	}
}

// step does one thing.
func (h *history) step(kills bool) {
	h.t.Helper()
	switch n := h.random.IntN(100); {
	case n < 45:
		h.submit(h.random.IntN(len(h.engines)), 1+h.random.IntN(4))
	case n < 65:
		h.abortSome()
	case n < 78:
		h.patch()
	case n < 80:
		h.badPatch()
	case n < 82:
		h.resetConfig()
	case n < 86:
		h.resetStats(h.random.IntN(2) == 0)
	case n < 92:
		h.compare()
	case n < 94:
		h.garbage()
	case n < 97:
		h.storm()
	case kills:
		h.kill()
	}
}

func (h *history) note(format string, args ...any) {
	h.steps = append(h.steps, fmt.Sprintf(format, args...))
}

// newRequest is one that nothing is wrong with, mostly.
func (h *history) newRequest(rank int) *request {
	h.numbers++
	r := &request{id: fmt.Sprintf("r-%d", h.numbers), prompt: 1 + h.random.IntN(8), tokens: uint32(1 + h.random.IntN(12))}
	switch h.random.IntN(20) {
	case 0:
		r.broken = true
	case 1:
		if open := h.engines[rank].running; len(open) > 0 && open[0].held && !open[0].aborted {
			r.id = open[0].id
		}
	}
	return r
}

// broken is a request of which nothing but the id can be read.
func broken(id string) []byte {
	b := msgp.AppendArrayHeader(nil, 20)
	b = msgp.AppendString(b, id)
	return msgp.AppendString(b, "these are no tokens")
}

func (h *history) submit(rank, n int) {
	for range n {
		r := h.newRequest(rank)
		h.note("engine %d: submit %s, %d + %d tokens, broken %t", rank, r.id, r.prompt, r.tokens, r.broken)
		h.deliver(rank, r)
	}
}

// deliver sends a request, where the engine is there.
func (h *history) deliver(rank int, r *request) {
	if !h.present(rank) {
		return
	}
	if !h.add(rank, r) {
		h.t.Fatalf("engine %d: request %s can't be sent", rank, r.id)
	}
	h.engines[rank].arrive(r)
}

// present says whether an engine is there for its client. One that was dead is back as soon as it has registered.
func (h *history) present(rank int) bool {
	if h.witness.isUp(rank) {
		h.returned(rank)
	}
	return !h.engines[rank].dead
}

// returned enters that an engine is there, whatever was known of it before, and waits until its client sees it.
func (h *history) returned(rank int) {
	if e := h.engines[rank]; e.dead {
		e.dead = false
		e.restarts++
		h.await(h.t, fmt.Sprintf("engine %d has registered", rank), func() bool { return h.witness.isUp(rank) })
	}
}

// abortSome gives up requests that are open, have ended, or never were.
func (h *history) abortSome() {
	rank := h.random.IntN(len(h.engines))
	for range 1 + h.random.IntN(3) {
		id := "nobody"
		if open := h.engines[rank].open(); len(open) > 0 && h.random.IntN(5) > 0 {
			id = open[h.random.IntN(len(open))].id
		} else if len(h.past) > 0 {
			id = h.past[h.random.IntN(len(h.past))]
		}
		h.abort(rank, id)
	}
}

func (h *history) abort(rank int, id string) {
	h.note("engine %d: abort %s", rank, id)
	if !h.present(rank) {
		return
	}
	if err := h.client.Abort(rank, id); err != nil {
		h.t.Fatalf("engine %d: abort: %v", rank, err)
	}
	h.engines[rank].giveUp(id)
}

// garbage is a message of which nothing can be read.
func (h *history) garbage() {
	rank := h.random.IntN(len(h.engines))
	h.note("engine %d: garbage", rank)
	if !h.present(rank) {
		return
	}
	if err := h.client.AddEncoded(rank, []byte{0xc1, 0xff}); err != nil {
		h.t.Fatalf("engine %d: garbage: %v", rank, err)
	}
	h.engines[rank].dropped++
	h.engines[rank].garbage++
}
