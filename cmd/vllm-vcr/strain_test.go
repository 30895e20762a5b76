package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"
)

// An engine whose process is kept from its work says that its tokens left late and that it is saturated, in /engines, /metrics
// and the log, and takes the latter back when it keeps up again. Tokens that nothing paces are never late.
func TestStrain(t *testing.T) {
	p := startServe(t, 1, "--control-timeout", "1")
	p.wantAnswer(t, 3)
	if e := p.strain(t); e.Saturated || e.Lateness.Outputs != 0 || e.InputsHigh == 0 {
		t.Errorf("after an answer at zero latency: %+v, want neither saturated nor late, and a request that was waited for", e)
	}
	p.control(t, "PATCH", "/config", `{"inter_token_latency": 5}`, 200)
	asked := make(chan int, 1)
	go func() {
		status, _ := p.chat(t, 1000)
		asked <- status
	}()
	p.awaitStats(t, `"running":1`)
	worker := p.strain(t).PID
	signalTo(t, worker, syscall.SIGSTOP)
	p.control(t, "GET", "/stats", "", 504) // after a second
	signalTo(t, worker, syscall.SIGCONT)
	p.awaitStrain(t, true)
	if !strings.Contains(p.get(t, "/metrics"), "vllm_vcr_saturated{engine=\"0\"} 1\n") {
		t.Error("the metrics of a saturated engine don't say so")
	}
	p.awaitLog(t, "saturated: this process sets the pace, not what it simulates")
	if status := <-asked; status != 200 {
		t.Errorf("status of the answer = %d, want 200", status)
	}
	p.awaitStrain(t, false)
	if e := p.strain(t); e.Lateness.Outputs != 999 {
		t.Errorf("%d outputs say how late they left, want 999: all but the first of the answer", e.Lateness.Outputs)
	}
}

type engineStrain struct {
	PID        int  `json:"pid"`
	Saturated  bool `json:"saturated"`
	InputsHigh int  `json:"input_queue_high"`
	Lateness   struct {
		Outputs int `json:"outputs"`
	} `json:"lateness"`
}

func (p *program) strain(t *testing.T) engineStrain {
	t.Helper()
	var body struct{ Engines []engineStrain }
	if err := json.Unmarshal([]byte(p.get(t, "/engines")), &body); err != nil || len(body.Engines) != 1 {
		t.Fatalf("%d engines, %v, want one", len(body.Engines), err)
	}
	return body.Engines[0]
}

func (p *program) awaitStrain(t *testing.T, saturated bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); p.strain(t).Saturated != saturated; {
		if time.Now().After(deadline) {
			t.Fatalf("saturated is not %v within %v", saturated, patience)
		}
	}
}

func signalTo(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}
