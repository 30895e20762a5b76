package frontend

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/protocol/enginecore"
)

// TestTurns_Taken has all turns taken: a request waits for one, and nothing else does.
func TestTurns_Taken(t *testing.T) {
	submittedC := make(chan struct{}, 1)
	a := start(t, &fakeEngines{
		HealthFunc: func() error { return nil },
		SubmitFunc: func([]dispatch.Request) (Streams, error) {
			submittedC <- struct{}{}
			return newStreams(says("one", enginecore.FinishLength)...), nil
		},
	})
	for range turnCount {
		a.turns.take()
	}
	answered := make(chan reply, 1)
	go func() { answered <- a.post("/v1/completions", `{"prompt":"x"}`) }()
	for _, path := range []string{"/health", "/ready", "/version", "/v1/models", "/load"} {
		if r := a.call("GET", path, ""); r.status != 200 {
			t.Errorf("%s = %d, want 200", path, r.status)
		}
	}
	select {
	case <-submittedC:
		t.Error("a request had no turn and went to the engines")
	default:
	}
	a.turns.give()
	if r := <-answered; r.status != 200 {
		t.Errorf("answer = %d %s, want 200", r.status, r.body)
	}
}

// TestTurns_Ended has more requests at the engines than there are turns, and others fail: neither keeps its turn.
func TestTurns_Ended(t *testing.T) {
	submittedC := make(chan struct{}, 2*turnCount)
	a := start(t, &fakeEngines{SubmitFunc: func([]dispatch.Request) (Streams, error) {
		submittedC <- struct{}{}
		return newStreams(), nil
	}})
	for range 2 * turnCount {
		wantError(t, a.post("/v1/completions", `{"prompt":1.5}`), 400, "")
		a.dial(request(`{"prompt":"x"}`))
		<-submittedC
	}
	for range turnCount {
		a.turns.take() // the last requests may be about to give theirs back
	}
}

// TestTurns_Panic gives the turn of a handler that panics back.
func TestTurns_Panic(t *testing.T) {
	a := start(t, &fakeEngines{}) // Submit panics
	for range turnCount + 1 {
		wantError(t, a.post("/v1/completions", `{"prompt":"x"}`), 500, "panicked")
	}
}

// TestTurns_LetIn has a crowd hand a turn on, one to the next, on one core, each having kept it for long: a byte that came to a
// connection before is read before the crowd is through.
func TestTurns_LetIn(t *testing.T) {
	const crowd = 1000
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	turns, err := newTurns()
	if err != nil {
		t.Fatal(err)
	}
	defer turns.close()
	for range turnCount {
		turns.take()
	}
	var through atomic.Int64
	var all sync.WaitGroup
	for range crowd {
		all.Go(func() {
			turns.take()
			turns.mu.Lock()
			turns.asked = time.Time{}
			turns.mu.Unlock()
			through.Add(1)
			turns.give()
		})
	}
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	before := int64(crowd)
	all.Go(func() {
		if _, err := in.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
		before = through.Load()
	})
	for range crowd {
		runtime.Gosched() // until all of them wait
	}
	if _, err := out.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	turns.give()
	all.Wait()
	if before == crowd {
		t.Errorf("the byte was read after all %d turns", crowd)
	}
}
