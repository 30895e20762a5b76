package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vllm-vcr/frontend/engineclient"
	"vllm-vcr/ipc"
	"vllm-vcr/protocol/enginecore"
)

// do makes one call with a JSON body, and returns status and answer.
func do(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// control makes one call to the control API that must be answered with this status.
func (p *program) control(t *testing.T, method, path, body string, want int) string {
	t.Helper()
	status, answer := do(t, method, fmt.Sprintf("http://%s%s", p.awaitLog(t, "control API listening")["address"], path), body)
	if status != want {
		t.Fatalf("%s %s %s: %d %s, want %d", method, path, body, status, answer, want)
	}
	return answer
}

// listener is a frontend that writes down what comes, and lets engines that were started again join.
type listener struct {
	*engineclient.Frontend
	mu      sync.Mutex
	changed chan struct{} // closed and replaced whenever something comes
	tokens  map[string]int
	ends    map[string]enginecore.FinishReason
	joined  int
}

func newListener(t *testing.T, engines int) *listener {
	t.Helper()
	l := &listener{changed: make(chan struct{}), tokens: map[string]int{}, ends: map[string]enginecore.FinishReason{}}
	frontend, err := engineclient.Listen(engineclient.Options{
		Handshake: "tcp://127.0.0.1:0", Engines: engines, KeepHandshake: true,
		Events: engineclient.Events{
			Outputs: func(d *engineclient.Delivery) { l.note(func() { l.take(d.Outputs) }) },
			Up:      func(int, enginecore.ReadyResponse) { l.note(func() { l.joined++ }) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = frontend.Close(ctx) // with nobody left to flush to
	})
	l.Frontend = frontend
	return l
}

func (l *listener) note(what func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what()
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *listener) take(o *enginecore.Outputs) {
	for i := range o.Requests {
		r := &o.Requests[i]
		l.tokens[string(r.ID)] += len(r.Tokens)
		if r.Finish != enginecore.FinishNone {
			l.ends[string(r.ID)] = r.Finish
		}
	}
}

// await waits until what is written down is as wanted.
func (l *listener) await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.After(patience); ; {
		l.mu.Lock()
		done, changed := ok(), l.changed
		l.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("not so after %v: %s", patience, what)
		}
	}
}

func (l *listener) add(t *testing.T, id string, tokens uint32) {
	t.Helper()
	sampling := enginecore.DefaultSampling()
	sampling.MaxTokens, sampling.IgnoreEOS = tokens, true
	if err := l.Client(0).Add(0, &enginecore.Request{ID: id, PromptTokens: []uint32{1, 2, 3}, Sampling: &sampling}); err != nil {
		t.Fatal(err)
	}
}

// answered waits for the end of a request.
func (l *listener) answered(t *testing.T, id string, tokens int, finish enginecore.FinishReason) {
	t.Helper()
	l.await(t, "the end of "+id, func() bool { _, ended := l.ends[id]; return ended })
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tokens[id] != tokens || l.ends[id] != finish {
		t.Errorf("%s: %d tokens and %v, want %d and %v", id, l.tokens[id], l.ends[id], tokens, finish)
	}
}

// faults reads GET /faults.
func (p *program) faults(t *testing.T) (active int, applied map[string]uint64) {
	t.Helper()
	var answer struct {
		Faults  []json.RawMessage `json:"faults"`
		Applied map[string]uint64 `json:"applied"`
	}
	if text := p.get(t, "/faults"); json.Unmarshal([]byte(text), &answer) != nil {
		t.Fatalf("GET /faults: %s", text)
	}
	for kind, n := range answer.Applied {
		if n == 0 {
			delete(answer.Applied, kind)
		}
	}
	return len(answer.Faults), answer.Applied
}

// Two crashes, each at a request's fourth token: the request has exactly those, the process is killed, the next one has what
// is left of the fault, and the books are closed.
func TestFaults_CrashTwice(t *testing.T) {
	l := newListener(t, 1)
	p := start(t, nil, "play", "--handshake-address", l.Handshake(), "--control-address", "127.0.0.1:0", "--restart", "on-failure")
	l.await(t, "the engine has joined", func() bool { return l.joined == 1 })
	p.control(t, http.MethodPost, "/faults", `{"kind":"crash","after_tokens":4,"count":2}`, http.StatusCreated)
	p.control(t, http.MethodPost, "/faults", `{"kind":"slow_handshake","delay":100,"count":1}`, http.StatusCreated)
	for crash := 1; crash <= 2; crash++ {
		id := fmt.Sprint(crash)
		l.add(t, id, 100)
		l.await(t, "the engine has joined again", func() bool { return l.joined == 1+crash })
		l.mu.Lock()
		if l.tokens[id] != 4 {
			t.Errorf("request %s got %d tokens before the crash, want 4", id, l.tokens[id])
		}
		if end, ended := l.ends[id]; ended {
			t.Errorf("request %s ended with %v, want no end", id, end)
		}
		l.mu.Unlock()
	}
	l.add(t, "after", 100)
	l.answered(t, "after", 100, enginecore.FinishLength)
	active, applied := p.faults(t)
	if diff := cmp.Diff(map[string]uint64{ipc.FaultCrash: 2, ipc.FaultSlowHandshake: 1}, applied); diff != "" || active != 0 {
		t.Errorf("%d faults active, want none; applied (-want +got):\n%s", active, diff)
	}
	want := `{"requests_received":3,"requests_completed":1,"requests_failed":2,"requests_aborted":0,"running":0,"waiting":0}`
	if got := p.get(t, "/stats"); got != want {
		t.Errorf("stats = %s, want %s", got, want)
	}
	if got := p.get(t, "/metrics"); !strings.Contains(got, `vllm_vcr_faults_applied_total{engine="0",kind="crash"} 2`) {
		t.Error("the metrics do not tell of two crashes")
	}
	if !strings.Contains(p.printed(), "signal 9") {
		t.Error("the log does not tell that the process was killed")
	}
}

// All engines crash at once, and the call that had them is answered; without restarts they stay dead.
func TestFaults_CrashAtOnce(t *testing.T) {
	l := newListener(t, 2)
	p := start(t, nil, "play", "--handshake-address", l.Handshake(), "--engine-count", "2", "--control-address", "127.0.0.1:0")
	l.await(t, "the engines have joined", func() bool { return l.joined == 2 })
	answer := p.control(t, http.MethodPost, "/faults", `{"kind":"crash"}`, http.StatusCreated)
	want := `{"id":1,"kind":"crash","engines":[{"engine":0,"active":false,"applied":1},{"engine":1,"active":false,"applied":1}]}`
	if answer != want {
		t.Errorf("answer = %s, want %s", answer, want)
	}
	if got := p.get(t, "/engines"); strings.Count(got, `"state":"dead"`) != 2 {
		t.Errorf("engines = %s, want two dead", got)
	}
	p.control(t, http.MethodDelete, "/faults", "", http.StatusNoContent)
}

// A hung engine is healthy to everybody who asks, and nothing comes of it until the hang is over; by itself, while nobody
// does anything.
func TestFaults_Hang(t *testing.T) {
	l := newListener(t, 1)
	p := start(t, nil, "play", "--handshake-address", l.Handshake(), "--control-address", "127.0.0.1:0")
	l.await(t, "the engine has joined", func() bool { return l.joined == 1 })
	begin := time.Now()
	p.control(t, http.MethodPost, "/faults", `{"kind":"hang","duration":700}`, http.StatusCreated)
	l.add(t, "a", 3)
	p.get(t, "/health")
	if active, _ := p.faults(t); active != 1 && time.Since(begin) < 600*time.Millisecond {
		t.Errorf("%d faults active, want the hang", active)
	}
	l.answered(t, "a", 3, enginecore.FinishLength)
	if took := time.Since(begin); took < 700*time.Millisecond {
		t.Errorf("an answer after %v, want at least 700 ms", took)
	}
	if active, applied := p.faults(t); active != 0 || applied[ipc.FaultHang] != 1 {
		t.Errorf("%d faults active and %v applied, want none and a hang", active, applied)
	}
}

// A request brings its own settings and faults through our front end, and is told what is wrong with them.
func TestFaults_OwnThroughServe(t *testing.T) {
	p := startServe(t, 1)
	url := fmt.Sprintf("http://%s", p.awaitLog(t, "OpenAI API listening")["address"])
	for _, c := range []struct {
		route, xargs string
		status       int
		says         string
	}{
		{"completions", `{"fault":"error"}`, 500, "error"},
		{"completions", `{"fault":"length","fault_after_tokens":3}`, 200, `"completion_tokens":3`},
		{"completions", `{"fault":"repetition","fault_after_tokens":2}`, 200, `"finish_reason":"repetition"`},
		{"completions", `{"failure_injection_rate":1,"failure_types":["length"]}`, 200, `"completion_tokens":0`},
		{"completions", `{"inter_token_latency":"fast"}`, 400, `inter_token_latency: \"fast\": want an integer`},
		{"completions", `{"fault":"hang"}`, 400, `fault: \"hang\": want one of`},
		{"completions", `{"somebody":"else's"}`, 200, `"completion_tokens":8`},
		{"chat/completions", `{"fault":"length","fault_after_tokens":5}`, 200, `"completion_tokens":5`},
		{"responses", `{"fault":"length","fault_after_tokens":5}`, 200, `"output_tokens":5`},
	} {
		body := fmt.Sprintf(`{"model":"vllm-vcr","prompt":"Hi","max_tokens":8,"vllm_xargs":%s}`, c.xargs)
		switch c.route {
		case "chat/completions":
			body = fmt.Sprintf(`{"messages":[{"role":"user","content":"Hi"}],"max_tokens":8,"vllm_xargs":%s}`, c.xargs)
		case "responses":
			body = fmt.Sprintf(`{"input":"Hi","max_output_tokens":8,"vllm_xargs":%s}`, c.xargs)
		}
		status, answer := do(t, http.MethodPost, url+"/v1/"+c.route, body)
		if status != c.status || !strings.Contains(answer, c.says) {
			t.Errorf("%s with %s: %d %s, want %d with %s", c.route, c.xargs, status, answer, c.status, c.says)
		}
	}
	begin := time.Now()
	status, answer := do(t, http.MethodPost, url+"/v1/completions",
		`{"model":"vllm-vcr","prompt":"Hi","max_tokens":4,"vllm_xargs":{"time_to_first_token":200,"inter_token_latency":50,"fault":"stall","fault_after_tokens":2,"fault_delay":100}}`)
	if took := time.Since(begin); status != http.StatusOK || took < 450*time.Millisecond {
		t.Errorf("slow by its own will: %d %s after %v, want 200 after 450 ms", status, answer, took)
	}
	if _, applied := p.faults(t); applied[ipc.FaultLength] != 3 || applied[ipc.FaultStall] != 1 {
		t.Errorf("applied = %v, want 3 of length and a stall", applied)
	}
	want := `{"requests_received":10,"requests_completed":2,"requests_failed":8,"requests_aborted":0,"running":0,"waiting":0}`
	if got := p.get(t, "/stats"); got != want {
		t.Errorf("stats = %s, want %s", got, want)
	}
}
