//go:build chaos

package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// state is what the patches of these tests change: two settings, always to the same value.
type state struct {
	TTFT uint64 `json:"time_to_first_token"`
	ITL  uint64 `json:"inter_token_latency"`
}

func both(value uint64) string {
	return fmt.Sprintf(`{"time_to_first_token": %d, "inter_token_latency": %d}`, value, value)
}

// F33: 10,000 patches of different values over 64 connections.
func TestF33_ManyPatches(t *testing.T) {
	const clients = 64
	patches := uint64(sized(10_000, 2_000))
	p := serve(t, 8, "--control-timeout", "60") // what a busy machine needs for a change is not what this is about
	var next, finished atomic.Uint64
	order := make([]uint64, patches) // values, by when their answer came
	var crowd sync.WaitGroup
	for range clients {
		crowd.Go(func() {
			for {
				value := next.Add(1)
				if value > patches {
					return
				}
				status, text, err := p.control.call("PATCH", "/config", both(value))
				order[finished.Add(1)-1] = value
				var got state
				if err == nil {
					err = json.Unmarshal([]byte(text), &got)
				}
				if err != nil || status != 200 || got != (state{value, value}) {
					t.Errorf("patch %d: %d %.200s, %v, want the state that it made", value, status, text, err)
				}
			}
		})
	}
	crowd.Wait()
	final := decode[state](t, p.control.must(t, "GET", "/config", ""))
	last := false
	for _, value := range order[patches-clients:] {
		last = last || final == state{value, value}
	}
	if !last {
		t.Errorf("the final state %+v is none of the %d that were answered last", final, clients)
	}
	p.wantEqual(t, patches, 0, 1, 2, 3, 4, 5, 6, 7)
}

// wantEqual wants the same configuration in these engines, of the same change; 0 stands for any.
func (p *program) wantEqual(t *testing.T, generation uint64, indices ...int) {
	t.Helper()
	all := p.engines(t)
	if generation == 0 {
		generation = all[indices[0]].Generation
	}
	first := p.control.must(t, "GET", fmt.Sprintf("/engines/%d/config", indices[0]), "")
	for _, i := range indices {
		if got := p.control.must(t, "GET", fmt.Sprintf("/engines/%d/config", i), ""); got != first {
			t.Errorf("engine %d has %s, want %s", i, got, first)
		}
		if got := all[i].Generation; got != generation {
			t.Errorf("engine %d has change %d, want %d", i, got, generation)
		}
	}
}

// F34: a worker dies under a storm of changes, so that some are between their rounds, and is started again.
func TestF34_DeathDuringPatches(t *testing.T) {
	const victim = 2
	p := serve(t, 4, "--restart", "on-failure")
	for round := range sized(4, 2) {
		stop, refused := make(chan struct{}), make(chan struct{}, 1)
		var storm sync.WaitGroup
		for i := range uint64(4) {
			storm.Go(func() {
				for value := i; ; value += 4 {
					select {
					case <-stop:
						return
					default:
					}
					if err := p.patchUnderFire(value, victim); errors.Is(err, errDead) {
						select {
						case refused <- struct{}{}:
						default:
						}
					} else if err != nil {
						t.Errorf("patch %d: %v", value, err)
					}
				}
			})
		}
		end := sync.OnceFunc(func() { close(stop); storm.Wait() })
		defer end()
		<-time.After(20 * time.Millisecond)
		kill(t, p.engines(t)[victim].PID, syscall.SIGKILL)
		select {
		case <-refused:
		case <-time.After(time.Second):
			t.Error("no patch was refused")
		}
		end()
		p.wantEqual(t, 0, 0, 1, 3)
		p.awaitBack(t, victim, round+1)
		if got := decode[state](t, p.control.must(t, "PATCH", "/config", both(7))); got != (state{7, 7}) {
			t.Errorf("patch after the restart: %+v", got)
		}
		p.wantEqual(t, 0, 0, 1, 2, 3)
	}
}

var errDead = errors.New("an engine is gone")

// patchUnderFire wants what a patch may be answered with while an engine dies.
func (p *program) patchUnderFire(value uint64, victim int) error {
	status, text, err := p.control.call("PATCH", "/config", both(value))
	if err != nil {
		return err
	}
	switch status {
	case 200:
		var got state
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != (state{value, value}) {
			return fmt.Errorf("answer %.200s, %w, want the state that it made", text, err)
		}
		return nil
	case 500:
		if !strings.Contains(text, fmt.Sprintf("engine %d", victim)) {
			return fmt.Errorf("answer %.200s names no engine %d", text, victim)
		}
		return errDead
	}
	return fmt.Errorf("%d %.200s", status, text)
}

// F40: the counters are set back again and again under load.
func TestF40_ResetUnderLoad(t *testing.T) {
	const clients = 32
	p := serve(t, 4, "--token-source", "echo", "--inter-token-latency", "1")
	stop := make(chan struct{})
	var load sync.WaitGroup
	for range clients {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := p.answered(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	end := sync.OnceFunc(func() { close(stop); load.Wait() })
	defer end()
	for end := time.Now().Add(time.Duration(sized(10, 3)) * time.Second); time.Now().Before(end); {
		p.control.must(t, "POST", "/stats/reset", "")
		for _, e := range p.engines(t) { // each at one moment, which a sum of several is not
			for _, n := range []uint64{e.Stats.Received, e.Stats.Completed, e.Stats.Failed, e.Stats.Aborted} {
				if n > 1<<40 {
					t.Fatalf("engine %d: %+v: a counter has gone below zero", e.Index, e.Stats)
				}
			}
			if e.Stats.Running+e.Stats.Waiting > clients {
				t.Fatalf("engine %d: %+v: more than %d requests", e.Index, e.Stats, clients)
			}
		}
	}
	if s := p.stats(t); s.Running+s.Waiting == 0 {
		t.Error("the gauges say that nothing runs under load")
	}
	end()
	p.control.must(t, "POST", "/stats/reset", "")
	if got := p.stats(t); got != (stats{}) {
		t.Errorf("%+v after a reset at idle, want zeros", got)
	}
	if err := p.answeredBy(0, 1, 2, 3); err != nil {
		t.Error(err)
	}
	if got, want := p.awaitIdle(t), (stats{Received: 4, Completed: 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// F41: GET /stats while an engine is busy with 10,000 admissions.
func TestF41_StatsWhileAdmitting(t *testing.T) {
	const requests = 10_000
	f := listen(t, "tcp://127.0.0.1:0", 1)
	p := f.play(t, 1, "--max-num-seqs", "20000", "--max-num-batched-tokens", "1000000", "--inter-token-latency", "20")
	var worst time.Duration
	added := make(chan struct{})
	go func() {
		defer close(added)
		for i := range requests {
			f.add(t, 0, fmt.Sprintf("r%d", i), 50)
		}
	}()
	asked := 0
	for s := (stats{}); s.Received < requests; asked++ {
		begun := time.Now()
		s = p.stats(t)
		worst = max(worst, time.Since(begun))
	}
	<-added
	if worst > 250*time.Millisecond {
		t.Errorf("the slowest GET /stats took %v, want at most 250 ms", worst)
	}
	t.Logf("asked %d times, the slowest took %v", asked, worst)
	f.awaitEnded(t, requests)
	if got, want := p.awaitIdle(t), (stats{Received: requests, Completed: requests}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// F42: log filters that are none, and 1000 that are.
func TestF42_LogFilter(t *testing.T) {
	const engines = 3
	p := serve(t, engines, "--token-source", "echo")
	filter := func(text string) string { return fmt.Sprintf(`{"filter": %q}`, text) }
	for text, status := range map[string]int{"vllm_vcr=loud": 400, "=": 400, strings.Repeat("x=info,", 100_000) + "=": 400, strings.Repeat("y", 3<<20): 413} {
		if err := p.control.want(status, "PUT", "/log", filter(text), `{"error":`); err != nil {
			t.Errorf("filter of %d bytes: %v", len(text), err)
		}
	}
	flip := func() {
		for i := range 1000 {
			text := []string{"info", "vllm_vcr::engine=trace,info"}[i%2]
			if err := p.control.want(200, "PUT", "/log", filter(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	flip() // what is kept once is kept
	before := p.footprint(t)
	flip()
	after := p.footprint(t)
	for pid, b := range before {
		if a := after[pid]; a.files != b.files || a.memory > b.memory+b.memory/4+4<<20 {
			t.Errorf("process %d has %d files and %d KB, want the %d files and about the %d KB from before", pid, a.files, a.memory>>10, b.files, b.memory>>10)
		}
	}
	logged := func() (n int) { // engines that log steps
		for i := range engines {
			if bytes.Contains([]byte(p.printed(t)), fmt.Appendf(nil, `"target":"vllm_vcr::engine","engine":%d`, i)) {
				n++
			}
		}
		return n
	}
	proctest.Eventually(t, patience, func() error { // it ended with trace
		if err := p.answeredBy(0, 1, 2); err != nil {
			return err
		}
		if n := logged(); n != engines {
			return fmt.Errorf("%d engines log their steps, want %d", n, engines)
		}
		return nil
	})
	p.control.must(t, "PUT", "/log", filter("info"))
	p.control.must(t, "GET", "/stats", "") // behind the filter at every engine
	size := len(p.printed(t))
	if err := p.answeredBy(0, 1, 2); err != nil {
		t.Error(err)
	}
	p.stop(t)
	if more := p.printed(t)[size:]; strings.Contains(more, `"level":"trace"`) {
		t.Errorf("engines log their steps with the filter info: %.500s", more)
	}
}

// use is what a process has of the machine.
type use struct {
	files  int
	memory int64
}

// footprint is what the program and its children have.
func (p *program) footprint(t *testing.T) map[int]use {
	t.Helper()
	all := map[int]use{}
	for _, pid := range append(proctest.Children(t, p.pid()), p.pid()) {
		memory, _ := resident(t, pid)
		all[pid] = use{len(proctest.Descriptors(t, pid)), memory}
	}
	return all
}
