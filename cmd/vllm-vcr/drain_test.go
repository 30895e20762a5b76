package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// post sends a JSON body, "" for none, to the control API of p and wants the status.
func (p *program) post(t *testing.T, path, body string, status int) string {
	t.Helper()
	url := fmt.Sprintf("http://%s%s", p.awaitLog(t, "control API listening")["address"], path)
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status {
		t.Fatalf("POST %s: %d %s, %v, want %d", path, answer.StatusCode, text, err, status)
	}
	return string(text)
}

// TestDrain_Finishes lets a request run to its end, as SIGTERM would, and ends with 0. A signal that comes meanwhile does no
// harm, and the API stays up.
func TestDrain_Finishes(t *testing.T) {
	f := startFleet(t, 2, "--shutdown-timeout", "60")
	f.submit(t, 100)
	if got, want := f.post(t, "/drain", "", http.StatusAccepted), `{"unfinished":1,"timeout":60}`; got != want {
		t.Errorf("answer = %s, want %s", got, want)
	}
	f.signal(t, syscall.SIGTERM)
	f.awaitLog(t, "signal received")
	if got, want := f.post(t, "/drain", `{"timeout":30}`, http.StatusAccepted), `{"unfinished":1,"timeout":30}`; got != want {
		t.Errorf("answer = %s, want %s", got, want)
	}
	if got := f.get(t, "/engines"); !strings.Contains(got, `"state":"draining"`) {
		t.Errorf("engines = %s, want one that drains", got)
	}
	f.wantEnd(t, 0, patience)
	wantLedger(t, f, map[string]any{"received": 1.0, "completed": 1.0, "failed": 0.0, "aborted": 0.0, "lost": 0.0})
}

// TestDrain_Aborts gives up what has not ended when its time is over, which a second drain can cut short.
func TestDrain_Aborts(t *testing.T) {
	f := startFleet(t, 1, "--shutdown-timeout", "600")
	f.submit(t, 100_000)
	f.post(t, "/drain", "", http.StatusAccepted)
	f.awaitLog(t, "shutting down")
	f.post(t, "/drain", `{"timeout":0}`, http.StatusAccepted)
	f.wantEnd(t, 0, 2*time.Second)
	wantLedger(t, f, map[string]any{"received": 1.0, "completed": 0.0, "failed": 0.0, "aborted": 1.0, "lost": 0.0})
}

// TestDrain_OneEngine leaves the other engine and the front end at work: once the engine has left, every request is answered.
func TestDrain_OneEngine(t *testing.T) {
	p := startServe(t, 2)
	p.wantAnswer(t, 3)
	if got, want := p.post(t, "/engines/1/drain", "", http.StatusAccepted), `{"unfinished":0,"timeout":0}`; got != want {
		t.Errorf("answer = %s, want %s", got, want)
	}
	p.awaitLog(t, "engine lost") // by the front end
	before := p.get(t, "/engines/1/stats")
	for range 10 {
		p.wantAnswer(t, 3)
	}
	if got := p.get(t, "/engines"); strings.Count(got, `"state":"ready"`) != 1 || strings.Count(got, `"state":"drained"`) != 1 {
		t.Errorf("engines = %s, want one ready and one drained", got)
	}
	if after := p.get(t, "/engines/1/stats"); after != before {
		t.Errorf("stats of the drained engine = %s, want %s as before", after, before)
	}
	if got := p.get(t, "/stats"); !strings.Contains(got, `"requests_received":11,"requests_completed":11,`) {
		t.Errorf("stats = %s, want 11 received and completed", got)
	}
	p.signal(t, syscall.SIGTERM)
	p.wantEnd(t, 0, 2*time.Second)
}
