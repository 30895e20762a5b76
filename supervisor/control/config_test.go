package control

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vllm-vcr/config"
	"vllm-vcr/supervisor"
)

func TestConfig_Get(t *testing.T) {
	fleet := &fakeFleet{ConfigFunc: func(context.Context) (config.Live, error) { return config.Default().Live, nil }}
	got := start(t, fleet, nil, Options{}).call(t, "GET", "/config", "")
	want := `{"time_to_first_token":0,"time_to_first_token_std_dev":0,"inter_token_latency":0,"inter_token_latency_std_dev":0,` +
		`"prefill_overhead":0,"prefill_time_per_token":0,"prefill_time_std_dev":0,"time_factor_under_load":1,"max_num_seqs":128,` +
		`"max_num_batched_tokens":2048,"max_model_len":0,"failure_injection_rate":0,"failure_types":["error"],"log_requests":false}`
	if got.status != http.StatusOK || got.body != want {
		t.Errorf("answer = %d %s, want 200 %s", got.status, got.body, want)
	}
	if contentType := got.header.Get("Content-Type"); contentType != "application/json" {
		t.Errorf("content type = %q, want application/json", contentType)
	}
}

func TestConfig_Head(t *testing.T) {
	fleet := &fakeFleet{ConfigFunc: func(context.Context) (config.Live, error) { return config.Default().Live, nil }}
	a := start(t, fleet, nil, Options{})
	get, head := a.call(t, "GET", "/config", ""), a.call(t, "HEAD", "/config", "")
	if head.status != http.StatusOK || head.body != "" || head.header.Get("Content-Length") != fmt.Sprint(len(get.body)) {
		t.Errorf("answer = %d, %d bytes, length %s, want 200, none, %d", head.status, len(head.body), head.header.Get("Content-Length"), len(get.body))
	}
}

func TestConfig_Patch(t *testing.T) {
	var got config.Patch
	calls := 0
	fleet := &fakeFleet{PatchFunc: func(_ context.Context, p config.Patch) (config.Live, error) {
		calls++
		got = p
		return p.Apply(config.Default().Live)
	}}
	a := start(t, fleet, nil, Options{})
	answer := a.call(t, "PATCH", "/config", `{"max_num_seqs": 4, "failure_types": ["error", "length"], "log_requests": null}`, "Content-Type: application/merge-patch+json; charset=utf-8")
	want := config.Patch{{Key: "max_num_seqs", Raw: "4"}, {Key: "failure_types", Raw: `["error", "length"]`}}
	if diff := cmp.Diff(want, got); diff != "" || calls != 1 {
		t.Errorf("%d calls, patch (-want +got):\n%s", calls, diff)
	}
	var live config.Live
	if err := json.Unmarshal([]byte(answer.body), &live); err != nil || answer.status != http.StatusOK || live.MaxNumSeqs != 4 {
		t.Errorf("answer = %d %s (%v), want 200 with max_num_seqs 4", answer.status, answer.body, err)
	}
	if answer := a.call(t, "PATCH", "/config", "{}"); answer.status != http.StatusOK || len(got) != 0 {
		t.Errorf("empty patch: answer = %d, patch %v, want 200 and an empty patch", answer.status, got)
	}
}

// The checks come in one order, and an engine that is gone is met last: each body breaks one rule and all later ones.
func TestConfig_Patch_OrderOfChecks(t *testing.T) {
	large := strings.Repeat(" ", bodyLimit+1)
	tests := []struct {
		name, contentType, body string
		status                  int
		says                    string
	}{
		{"content type", "text/plain", large + "{", 415, "text/plain"},
		{"form", "application/x-www-form-urlencoded", "{}", 415, "application/json"},
		{"jsonp", "application/jsonp", "{}", 415, "application/jsonp"},
		{"size", "application/json", large + "{", 413, "2097152"},
		{"syntax", "application/json", `{"bogus":1,"failure_injection_rate":2`, 400, "valid JSON"},
		{"shape", "application/json", `{"failure_injection_rate":2,"bogus":1}`, 422, "bogus"},
		{"range", "application/json", `{"failure_injection_rate":2}`, 400, "failure_injection_rate: 2"},
		{"engine", "application/json", `{"failure_injection_rate":1}`, 500, "engine 3 is gone"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var calls atomic.Int64
			fleet := &fakeFleet{PatchFunc: func(context.Context, config.Patch) (config.Live, error) {
				calls.Add(1)
				return config.Live{}, &supervisor.GoneError{Index: 3, Rank: 3, Reason: "killed by signal 9"}
			}}
			got := start(t, fleet, nil, Options{}).call(t, "PATCH", "/config", tt.body, "Content-Type: "+tt.contentType)
			wantError(t, got, tt.status, tt.says)
			if reached := calls.Load() > 0; reached != (tt.status == 500) {
				t.Errorf("the fleet was called %d times", calls.Load())
			}
		})
	}
}

func TestConfig_Patch_NoContentType(t *testing.T) {
	a := start(t, &fakeFleet{}, nil, Options{})
	got := a.raw(t, "PATCH /config HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
	if !strings.HasPrefix(got, "HTTP/1.1 415 ") {
		t.Errorf("answer = %s, want 415", got)
	}
}

func TestConfig_Reset(t *testing.T) {
	fleet := &fakeFleet{ResetConfigFunc: func(context.Context) (config.Live, error) { return config.Default().Live, nil }}
	got := start(t, fleet, nil, Options{}).call(t, "POST", "/config/reset", "ignored", "Content-Type: text/plain")
	if got.status != http.StatusOK || !strings.Contains(got.body, `"max_num_seqs":128`) {
		t.Errorf("answer = %d %s, want 200 and the settings", got.status, got.body)
	}
}

// Every key that can be patched is a key of the answer, in the same order of fields, and the other way round.
func TestConfig_KeysAgree(t *testing.T) {
	raw, err := json.Marshal(config.Default().Live)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatal(err)
	}
	keys := config.LiveKeys()
	if len(keys) != len(members) {
		t.Errorf("%d keys can be patched, the answer has %d", len(keys), len(members))
	}
	for _, key := range keys {
		if _, ok := members[key]; !ok {
			t.Errorf("%s can be patched but is not in the answer", key)
		}
	}
	patch, err := decodePatch(raw)
	if err != nil {
		t.Fatalf("the answer of GET is no patch: %v", err)
	}
	if got, err := patch.Apply(config.Live{}); err != nil || !cmp.Equal(got, config.Default().Live) {
		t.Errorf("the answer of GET applied to nothing gives %+v (%v)", got, err)
	}
}

// The deadline of a call counts from its arrival, and the client's leaving does not end it.
func TestConfig_Patch_ClientLeaves(t *testing.T) {
	entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	fleet := &fakeFleet{PatchFunc: func(ctx context.Context, _ config.Patch) (config.Live, error) {
		close(entered)
		<-leave
		done <- ctx.Err()
		return config.Live{}, nil
	}}
	a := start(t, fleet, nil, Options{Timeout: time.Minute})
	conn := a.dial(t)
	fmt.Fprintf(conn, "PATCH /config HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
	<-entered
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	close(leave)
	if err := <-done; err != nil {
		t.Errorf("the call's context ended with %v when its client left", err)
	}
}
