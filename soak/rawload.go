package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"vllm-vcr/frontend/engineclient"
	"vllm-vcr/protocol/enginecore"
)

// rawSlots is how many requests the raw load keeps open on each engine.
const rawSlots = 24

// rawLoad is a frontend in this program and the requests of its client: it keeps every engine that is there busy.
type rawLoad struct {
	handshake string
	lanes     []*lane
	paused    atomic.Bool
	stalled   atomic.Int64 // nothing is read until then, in ns since 1970
	number    atomic.Uint64

	mu       sync.Mutex // held while the frontend is replaced
	frontend *engineclient.Frontend
}

// lane is the requests of one engine.
type lane struct {
	mu    sync.Mutex
	up    bool
	open  map[string]*rawRequest
	books books
	fault error // the first thing that must not be
}

type rawRequest struct {
	want, seen uint32 // tokens
	giveUpAt   uint32 // tokens after which it is aborted; 0 = never
}

func newRawLoad(handshake string, engines int) (*rawLoad, error) {
	l := &rawLoad{handshake: handshake}
	for range engines {
		l.lanes = append(l.lanes, &lane{open: map[string]*rawRequest{}})
	}
	return l, l.listen()
}

// listen opens the frontend.
func (l *rawLoad) listen() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := engineclient.Listen(engineclient.Options{
		Handshake: l.handshake, Engines: len(l.lanes), KeepHandshake: true,
		Events: engineclient.Events{
			Outputs: l.take,
			Up:      func(rank int, _ enginecore.ReadyResponse) { l.lanes[rank].mark(true) },
			Lost:    func(rank int, _ error) { l.lanes[rank].mark(false) },
		},
	})
	l.frontend = f
	return err
}

// vanish closes the frontend without a word, and opens it again a while later.
func (l *rawLoad) vanish(ctx context.Context, away time.Duration) error {
	l.close()
	for _, a := range l.lanes {
		a.mark(false)
	}
	wait(ctx, away)
	return l.listen()
}

func (l *rawLoad) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = l.frontend.Close(ctx) // at once, so nothing is flushed
}

// mark enters that an engine came or went. What is open then has no end that anybody will see.
func (a *lane) mark(up bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.up = up
	a.books.unseen += uint64(len(a.open))
	clear(a.open)
}

func (l *rawLoad) take(d *engineclient.Delivery) {
	for wait := time.Until(time.Unix(0, l.stalled.Load())); wait > 0; wait = 0 {
		time.Sleep(wait)
	}
	a := l.lanes[d.Outputs.EngineIndex]
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range d.Outputs.Requests {
		a.output(&d.Outputs.Requests[i])
	}
}

// output has a.mu. Requests that are given up are those that the pump finds beyond their mark.
func (a *lane) output(o *enginecore.RequestOutput) {
	r := a.open[string(o.ID)]
	if r == nil {
		return // its engine was lost meanwhile: these are last words
	}
	r.seen += uint32(len(o.Tokens))
	a.books.tokens += uint64(len(o.Tokens))
	switch {
	case o.Finish == enginecore.FinishNone:
		return
	case o.Finish == enginecore.FinishAbort:
		a.books.aborted++
	case o.Finish == enginecore.FinishLength && r.seen == r.want:
		a.books.completed++
	case o.Finish == enginecore.FinishError && r.seen == 0:
		a.books.failed++
	default:
		a.fault = fmt.Errorf("request %s ended with %v after %d of %d tokens", o.ID, o.Finish, r.seen, r.want)
	}
	delete(a.open, string(o.ID))
}

// pump sends requests and aborts until ctx ends.
func (l *rawLoad) pump(ctx context.Context, random *rand.Rand) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for rank := range l.lanes {
			l.fill(rank, random)
		}
	}
}

// fill tops up what is open on an engine.
func (l *rawLoad) fill(rank int, random *rand.Rand) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.lanes[rank]
	a.mu.Lock()
	defer a.mu.Unlock()
	client := l.frontend.Client(0)
	for id, r := range a.open {
		if r.giveUpAt > 0 && r.seen >= r.giveUpAt {
			r.giveUpAt = 0
			_ = client.Abort(rank, id) // where the engine has gone, it has no end
		}
	}
	for a.up && !l.paused.Load() && len(a.open) < rawSlots {
		r := &rawRequest{want: 1 + random.Uint32N(300)}
		if random.IntN(10) == 0 {
			r.giveUpAt = 1 + random.Uint32N(r.want)
		}
		id := fmt.Sprintf("raw-%d", l.number.Add(1))
		a.books.sent++
		if client.Add(rank, rawAdd(id, r.want)) != nil {
			a.books.unseen++
			return // the event that tells of it comes
		}
		a.open[id] = r
	}
}

func rawAdd(id string, tokens uint32) *enginecore.Request {
	sampling := enginecore.DefaultSampling()
	sampling.MaxTokens, sampling.IgnoreEOS = tokens, true
	return &enginecore.Request{ID: id, PromptTokens: make([]uint32, 16), Sampling: &sampling}
}

// idle says whether nothing is open.
func (l *rawLoad) idle() bool {
	for _, a := range l.lanes {
		a.mu.Lock()
		n := len(a.open)
		a.mu.Unlock()
		if n > 0 {
			return false
		}
	}
	return true
}

// books are those of one engine, and the first thing that must not be.
func (l *rawLoad) booksOf(rank int) (books, error) {
	a := l.lanes[rank]
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.books, a.fault
}

func (l *rawLoad) total() books {
	var sum books
	for rank := range l.lanes {
		b, _ := l.booksOf(rank) // the fault is told at the end
		sum = sum.plus(b)
	}
	return sum
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
