package dispatch

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/worker"
)

// discard takes a worker's log.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// startWorker runs a real engine that joins a dispatcher, with a supervisor that says nothing after its first frame. The result
// kills it: all its connections end.
func startWorker(t *testing.T, index int, handshake string, change func(*config.Config)) (kill func()) {
	t.Helper()
	page, file, err := ipc.NewPage()
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	cfg := config.Default()
	cfg.HandshakeAddress = handshake
	change(&cfg)
	ours, theirs := net.Pipe()
	var running sync.WaitGroup
	running.Go(func() {
		_ = worker.Run(worker.Env{Supervisor: theirs, Page: page, Stderr: discard{}, Signals: make(chan os.Signal)})
	})
	running.Go(func() { // take what it reports
		for buf := make([]byte, 4096); ; {
			if _, err := ours.Read(buf); err != nil {
				return
			}
		}
	})
	start := ipc.Start{Magic: ipc.Magic, Version: ipc.Version, Index: index, Config: cfg, LogFilter: "off"}
	frame, err := ipc.Append(nil, ipc.KindStart, 0, start)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Write(frame); err != nil {
		t.Fatal(err)
	}
	kill = func() { _ = ours.Close(); running.Wait() }
	t.Cleanup(func() { kill(); _ = page.Close() })
	return kill
}

// ledger counts how streams ended, as their consumers saw it.
type ledger struct {
	whole, canceled, lost, stopped atomic.Int64
}

// Every stream ends exactly once, whatever of its last token, a cancel, a stop and its engine's death comes first; and the observer
// is told of as many ends.
func TestDispatcher_Ledger(t *testing.T) {
	const engines, consumers, each, maxTokens = 3, 24, 40, 24
	w := &witness{}
	r := emptyRig(t, engines, w)
	kills := make([]func(), engines)
	for i := range engines {
		kills[i] = startWorker(t, i, r.Handshake(), func(c *config.Config) { c.Live.InterTokenLatency = 1; c.Live.MaxNumSeqs = 8 })
	}
	if err := r.Ready(within(t)); err != nil {
		t.Fatal(err)
	}
	var l ledger
	var begun atomic.Int64
	var running sync.WaitGroup
	for c := range consumers {
		running.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(c)))
			for range each {
				if begun.Add(1) == consumers*each/2 {
					running.Go(kills[1])
				}
				consume(t, r.Dispatcher, &l, random, maxTokens)
			}
		})
	}
	running.Wait()
	total := l.whole.Load() + l.canceled.Load() + l.lost.Load() + l.stopped.Load()
	if total != consumers*each {
		t.Errorf("%d streams ended, want %d", total, consumers*each)
	}
	if l.whole.Load() == 0 || l.canceled.Load() == 0 || l.stopped.Load() == 0 || l.lost.Load() == 0 {
		t.Errorf("ends: %d whole, %d canceled, %d stopped, %d lost; want some of each",
			l.whole.Load(), l.canceled.Load(), l.stopped.Load(), l.lost.Load())
	}
	if n := len(w.reasons()); n != consumers*each {
		t.Errorf("the observer was told of %d ends, want %d", n, consumers*each)
	}
	for _, e := range r.Engines() {
		if e.Open != 0 {
			t.Errorf("engine %d: %d open requests, want 0", e.Rank, e.Open)
		}
	}
}

// consume makes one request and reads it to a random point.
func consume(t *testing.T, d *Dispatcher, l *ledger, random *rand.Rand, maxTokens int) {
	s, err := d.Submit(request("r", uint32(maxTokens)))
	if err != nil {
		t.Errorf("Submit: %v", err)
		return
	}
	giveUpAt, stop := random.IntN(2*maxTokens), random.IntN(2) == 0
	var canceling sync.WaitGroup
	defer canceling.Wait()
	if giveUpAt == 0 { // from elsewhere, at any time
		canceling.Go(s.Cancel)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	seen := 0
	var last enginecore.FinishReason
	for {
		c, err := s.Next(ctx)
		if err != nil {
			l.enter(t, err, last, seen == maxTokens, stop && giveUpAt > 0)
			return
		}
		seen += len(c.Tokens)
		last = c.Finish
		switch {
		case seen < giveUpAt || giveUpAt == 0:
		case stop:
			s.Stop()
		default:
			s.Cancel()
		}
	}
}

func (l *ledger) enter(t *testing.T, err error, last enginecore.FinishReason, complete, stop bool) {
	var dead *EngineDeadError
	switch {
	case err == io.EOF && complete && last == enginecore.FinishLength:
		l.whole.Add(1)
	case err == io.EOF && last == enginecore.FinishAbort: // the engine still said so
		l.lost.Add(1)
	case errors.Is(err, ErrCanceled) && stop:
		l.stopped.Add(1)
	case errors.Is(err, ErrCanceled):
		l.canceled.Add(1)
	case errors.As(err, &dead) && dead.Rank == 1:
		l.lost.Add(1)
	default:
		t.Errorf("stream ended with %v and %v, complete: %v", err, last, complete)
	}
}

// What is observed is observed before the consumer can see it, with a real engine.
func TestDispatcher_ObservedFirst(t *testing.T) {
	w := &witness{}
	r := emptyRig(t, 1, w)
	startWorker(t, 0, r.Handshake(), func(*config.Config) {})
	if err := r.Ready(within(t)); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		s := r.submit(t, request("r", 3))
		if a := drain(within(t), s); a.Err != io.EOF || len(a.Tokens) != 3 {
			t.Fatalf("answer %d: %+v", i, a)
		}
		if n := len(w.reasons()); n != i+1 {
			t.Fatalf("%d ends observed after %d answers", n, i+1)
		}
	}
	steps, ends := w.seen()
	generated := 0
	for _, s := range steps {
		generated += s.Generated
	}
	if generated != 600 {
		t.Errorf("%d tokens observed, want 600", generated)
	}
	for _, e := range ends {
		if e.Total <= 0 || e.Total > patience.Seconds() || e.Prompt != 3 || e.Generated != 3 || e.Queue < 0 || e.Inference < 0 {
			t.Fatalf("end = %+v", e)
		}
	}
}

// An abort reaches the engine and frees its slot.
func TestDispatcher_CancelFreesTheSlot(t *testing.T) {
	r := emptyRig(t, 1, nil)
	startWorker(t, 0, r.Handshake(), func(c *config.Config) { c.Live.MaxNumSeqs = 1; c.Live.InterTokenLatency = 50 })
	if err := r.Ready(within(t)); err != nil {
		t.Fatal(err)
	}
	long := r.submit(t, request("long", 4000))
	if _, err := long.Next(within(t)); err != nil {
		t.Fatal(err)
	}
	next := r.submit(t, request("next", 1))
	began := time.Now()
	long.Cancel()
	if a := drain(within(t), next); a.Err != io.EOF {
		t.Errorf("next = %+v", a)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("the slot was free after %v, want within a second", took)
	}
}
