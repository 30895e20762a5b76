package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// httpLoad keeps a server busy with a fixed number of streams: where one ends its client asks for the next. It checks every
// stream.
type httpLoad struct {
	shape     shape // streams are slots; the engines are the server's matter
	plain     bool  // each token is one letter of text, see plainTokens
	address   string
	request   []byte      // the same for every stream
	measuring atomic.Bool // streams asked for now are to be timed
	stopping  atomic.Bool // streams that end are not followed by others

	events               atomic.Uint64 // with text, so far
	requests             atomic.Uint64 // that ended
	endEvents, endTokens atomic.Uint64 // of the requests that ended

	ctx     context.Context // ends when a stream fails, with the reason
	cancel  context.CancelCauseFunc
	running sync.WaitGroup

	mu           sync.Mutex
	first, later hist // how late events were; see late
}

// newHTTPLoad prepares a load, which ends with ctx. It is to be closed.
func newHTTPLoad(ctx context.Context, h *host, s shape) (*httpLoad, error) {
	request, err := chatRequest(h.address, h.model, s.prompt, s.tokens)
	if err != nil {
		return nil, err
	}
	l := &httpLoad{shape: s, plain: h.plain, address: h.address, request: request}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	return l, nil
}

// start begins the streams, spread as the shape says.
func (l *httpLoad) start() error {
	begin := time.Now()
	for slot := range l.shape.slots {
		due := begin.Add(l.shape.over * time.Duration(slot) / time.Duration(l.shape.slots))
		if wait := time.Until(due); wait > 0 {
			if err := l.wait(wait); err != nil {
				return err
			}
		}
		l.running.Go(func() {
			if err := l.visit(l.ctx); err != nil {
				l.cancel(err)
			}
		})
	}
	return l.wait(0)
}

// wait lets the load run for a while.
func (l *httpLoad) wait(d time.Duration) error { return pause(l.ctx, d) }

// stop lets the running streams end, which must come within the given time.
func (l *httpLoad) stop(within time.Duration) error {
	l.stopping.Store(true)
	t := time.AfterFunc(within, func() { l.cancel(fmt.Errorf("streams that have not ended after %v", within)) })
	defer t.Stop()
	l.running.Wait()
	return context.Cause(l.ctx)
}

// close ends all streams and waits for them.
func (l *httpLoad) close() {
	l.cancel(nil)
	l.running.Wait()
}

// ended enters a stream that was as it should be.
func (l *httpLoad) ended(e *events) {
	l.endEvents.Add(uint64(e.content))
	l.endTokens.Add(uint64(e.tokens))
	l.requests.Add(1)
}

// late enters n tokens that came together, the given time after their request, as the stream's first, counted from 0, and those
// behind it. Token k should come TTFT + k·ITL after the request. Of a server whose tokens can't be told the events are
// entered: where it puts several tokens into one, the events behind it look late.
func (l *httpLoad) late(first, n int, after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := first; k < first+n; k++ {
		h := &l.later
		if k == 0 {
			h = &l.first
		}
		h.add(after - l.shape.ttft - time.Duration(k)*l.shape.itl)
	}
}

// httpTotals are what came so far.
type httpTotals struct{ events, requests, endEvents, endTokens uint64 }

func (l *httpLoad) totals() httpTotals {
	return httpTotals{l.events.Load(), l.requests.Load(), l.endEvents.Load(), l.endTokens.Load()}
}

func (t httpTotals) since(earlier httpTotals) httpTotals {
	return httpTotals{
		t.events - earlier.events, t.requests - earlier.requests, t.endEvents - earlier.endEvents, t.endTokens - earlier.endTokens,
	}
}

// perEvent is the number of tokens in an event, of the streams that ended.
func (t httpTotals) perEvent() float64 { return ratio(float64(t.endTokens), float64(t.endEvents)) }

// tokens is how many came. Only usage counts tokens, and it comes at the end of a stream, so that those of running ones are
// told by their events.
func (t httpTotals) tokens() float64 { return float64(t.events) * t.perEvent() }
