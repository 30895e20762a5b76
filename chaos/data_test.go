//go:build chaos

package chaos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/proctest"
	"vllm-vcr/protocol/enginecore"
)

// F44: aborts that come when their requests end by themselves, a moment before or after it.
func TestF44_AbortAtTheEnd(t *testing.T) {
	const tokens, itl = 5, 2 * time.Millisecond
	requests := sized(20_000, 4_000)
	f := listen(t, "tcp://127.0.0.1:0", 1)
	p := f.play(t, 1, "--inter-token-latency", "2", "--max-num-seqs", "1000")
	var racing sync.WaitGroup
	slots := make(chan struct{}, 200)
	for i := range requests {
		slots <- struct{}{}
		id := fmt.Sprintf("r%d", i)
		f.add(t, 0, id, tokens)
		racing.Go(func() {
			defer func() { <-slots }()
			<-time.After((tokens-1)*itl + time.Duration(rand.IntN(2000)-1000)*time.Microsecond)
			if err := f.Client(0).Abort(0, id); err != nil {
				t.Error(err)
			}
		})
	}
	racing.Wait()
	s := p.awaitIdle(t)
	if s.Received != uint64(requests) || s.Failed != 0 {
		t.Errorf("%+v, want %d received and none failed", s, requests)
	}
	if s.Completed == 0 || s.Aborted == 0 {
		t.Errorf("%+v: one side won every race, so nothing was tried", s)
	}
	t.Logf("%d completed, %d aborted", s.Completed, s.Aborted)
	f.wantOnce(t)
	completed := uint64(0)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, ends := range f.ends {
		if ends[0] == enginecore.FinishLength {
			completed++
		}
	}
	if completed != s.Completed {
		t.Errorf("the frontend saw %d requests complete, the engine counts %d", completed, s.Completed)
	}
}

// wantOnce wants that no request was told to have ended twice.
func (f *front) wantOnce(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, ends := range f.ends {
		if len(ends) != 1 {
			t.Errorf("request %s ended %d times: %v", id, len(ends), ends)
		}
	}
}

// F45: aborts of requests that never were or are no more, and an id that is in use.
func TestF45_UnknownAndDuplicate(t *testing.T) {
	f := listen(t, "tcp://127.0.0.1:0", 1)
	p := f.play(t, 1, "--inter-token-latency", "10")
	f.add(t, 0, "first", 2)
	f.awaitEnded(t, 1)
	if err := f.Client(0).Abort(0, "first", "nobody", ""); err != nil {
		t.Fatal(err)
	}
	f.add(t, 0, "twin", 20)
	f.add(t, 0, "twin", 20)
	proctest.Eventually(t, patience, func() error {
		if ends := f.endsOf("twin"); len(ends) != 2 {
			return fmt.Errorf("the twins have ended %v", ends)
		}
		return nil
	})
	if got, want := f.endsOf("twin"), []enginecore.FinishReason{enginecore.FinishError, enginecore.FinishLength}; !slices.Equal(got, want) {
		t.Errorf("the twins ended %v, want %v: the newcomer is refused, the first runs on", got, want)
	}
	if got, want := p.awaitIdle(t), (stats{Received: 3, Completed: 2, Failed: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// F48: a frontend that goes, with requests running, and comes back at the same address.
func TestF48_FrontendReturns(t *testing.T) {
	address := "tcp://127.0.0.1:" + freePorts(t, 1)[0]
	f := listen(t, address, 2)
	p := f.play(t, 2, "--inter-token-latency", "20")
	for i := range 4 {
		f.add(t, i%2, fmt.Sprint(i), 100_000)
	}
	p.awaitRunning(t, 4)
	f.close()
	proctest.Eventually(t, time.Second, func() error {
		if got, want := p.stats(t), (stats{Received: 4, Aborted: 4}); got != want {
			return fmt.Errorf("%+v, want %+v", got, want)
		}
		return nil
	})
	if err := p.control.want(503, "GET", "/health", "", "reconnecting"); err != nil {
		t.Error(err)
	}
	if share := p.medianShare(t); share > 0.05 {
		t.Errorf("without a frontend it uses %.1f %% of a core, want at most 5", 100*share)
	}
	back := listen(t, address, 2)
	back.awaitReady(t)
	back.add(t, 0, "again0", 3)
	back.add(t, 1, "again1", 3)
	back.awaitEnded(t, 2)
	if got, want := p.awaitIdle(t), (stats{Received: 6, Completed: 2, Aborted: 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// F48: and with --on-frontend-loss exit.
func TestF48_FrontendLost_Exit(t *testing.T) {
	f := listen(t, "tcp://127.0.0.1:0", 2)
	p := f.play(t, 2, "--on-frontend-loss", "exit")
	p.before = proctest.Children(t, p.pid())
	f.close()
	p.wantExit(t, 1, 2*time.Second)
	if !strings.Contains(p.printed(t), "the frontend is gone") {
		t.Error("printed nothing about the frontend")
	}
}

// F50: a reader of an engine's messages that takes nothing. There are no KV events and no publisher of them, so what can get stuck is the
// output: the engine doesn't wait for it, holds a bounded number of bytes, and hands all of it over at last.
func TestF50_StuckReader(t *testing.T) {
	const requests, tokens = 100, 40_000
	f := listen(t, "tcp://127.0.0.1:0", 1)
	p := f.play(t, 1, "--max-num-seqs", "200")
	pid := p.engines(t)[0].PID
	before, _ := resident(t, pid)
	f.mu.Lock() // nothing is taken any more
	for i := range requests {
		if err := f.try(0, fmt.Sprint(i), tokens); err != nil {
			t.Error(err)
		}
	}
	proctest.Eventually(t, patience, func() error {
		if e := p.engines(t)[0]; e.Held < 1<<20 {
			return fmt.Errorf("%d bytes are held, want more than a MB of them", e.Held)
		}
		return nil
	})
	for range 20 {
		begun := time.Now()
		p.control.must(t, "GET", "/stats", "")
		if took := time.Since(begun); took > 250*time.Millisecond {
			t.Errorf("GET /stats took %v, want at most 250 ms", took)
		}
	}
	if e := p.engines(t)[0]; e.Held > 16<<20 {
		t.Errorf("%d bytes are held, want at most 16 MB", e.Held)
	}
	if after, _ := resident(t, pid); after-before > 64<<20 {
		t.Errorf("resident memory rose by %d MB, want at most 64", (after-before)>>20)
	}
	f.mu.Unlock()
	f.awaitEnded(t, requests)
	for i := range requests {
		f.mu.Lock()
		if got := f.tokens[fmt.Sprint(i)]; got != tokens {
			t.Errorf("request %d: %d tokens, want %d", i, got, tokens)
		}
		f.mu.Unlock()
	}
}

// F52: everything fails, everything is aborted, and the fleet is stopped, all at once.
func TestF52_FailAbortDrain(t *testing.T) {
	f := listen(t, "tcp://127.0.0.1:0", 2)
	p := f.play(t, 2, "--failure-injection-rate", "0.5", "--shutdown-timeout", "1", "--inter-token-latency", "1")
	var sent atomic.Uint64
	stop := make(chan struct{})
	var storm sync.WaitGroup
	for c := range 8 {
		storm.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprintf("%d-%d", c, i)
				if f.try(c%2, id, 1+uint32(i%50)) != nil || f.Client(0).Abort(c%2, id, fmt.Sprintf("%d-%d", c, i-20)) != nil {
					return // the engine has gone
				}
				sent.Add(1)
			}
		})
	}
	proctest.Eventually(t, patience, func() error {
		if sent.Load() < 20_000 {
			return errors.New("the storm is still weak")
		}
		return nil
	})
	p.control.must(t, "PATCH", "/config", `{"failure_injection_rate": 1}`)
	p.signal(t, syscall.SIGTERM)
	p.wantExit(t, 0, 8*time.Second)
	close(stop)
	storm.Wait()
	l := p.awaitLog(t, "fleet stopped")
	n := func(key string) uint64 { v, _ := l[key].(float64); return uint64(v) }
	if n("received") < 20_000 || n("received") != n("completed")+n("failed")+n("aborted") || n("failed") == 0 || n("aborted") == 0 || n("lost") != 0 {
		t.Errorf("%v, want books that add up, with failed and aborted requests and no lost ones", l)
	}
	f.wantOnce(t)
}

// medianShare is the share of a core that p and its children use in the second of three seconds that is neither the best nor the worst:
// a virtual machine's processor may be slow for one.
func (p *program) medianShare(t *testing.T) float64 {
	t.Helper()
	family := append(proctest.Children(t, p.pid()), p.pid())
	var shares []float64
	for range 3 {
		used, begun := proctest.CPUTime(family...), time.Now()
		<-time.After(time.Second)
		shares = append(shares, (proctest.CPUTime(family...)-used).Seconds()/time.Since(begun).Seconds())
	}
	slices.Sort(shares)
	return shares[1]
}
