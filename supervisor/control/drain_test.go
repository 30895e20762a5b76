package control

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"vllm-vcr/ipc"
	"vllm-vcr/supervisor"
)

// A drain is answered with what there is to finish and the time there is for it: what was asked for, or less.
func TestDrain(t *testing.T) {
	fleet := &fakeFleet{
		DrainFunc: func(_ context.Context, timeout uint64) (ipc.Drain, error) {
			return ipc.Drain{Unfinished: 100, Timeout: min(timeout, 20)}, nil
		},
		DrainEngineFunc: func(_ context.Context, i int, timeout uint64) (ipc.Drain, error) {
			return ipc.Drain{Unfinished: uint64(1000 * i), Timeout: min(timeout, 20)}, nil
		},
	}
	a := start(t, fleet, nil, Options{ShutdownTimeout: 7})
	tests := []struct {
		body    string
		timeout int
	}{
		{"", 7},
		{"{}", 7},
		{`{"timeout":null}`, 7},
		{`{"timeout":0}`, 0},
		{`{"timeout":30}`, 20},
	}
	for _, tt := range tests {
		t.Run(tt.body, func(t *testing.T) {
			want := fmt.Sprintf(`{"unfinished":100,"timeout":%d}`, tt.timeout)
			if got := a.call(t, "POST", "/drain", tt.body); got.status != http.StatusAccepted || got.body != want {
				t.Errorf("answer = %d %s, want 202 %s", got.status, got.body, want)
			}
			want = fmt.Sprintf(`{"unfinished":2000,"timeout":%d}`, tt.timeout)
			if got := a.call(t, "POST", "/engines/2/drain", tt.body); got.status != http.StatusAccepted || got.body != want {
				t.Errorf("engine 2 = %d %s, want 202 %s", got.status, got.body, want)
			}
		})
	}
}

// What is refused drains nothing: a fleet that is asked panics.
func TestDrain_Refused(t *testing.T) {
	a := start(t, &fakeFleet{}, nil, Options{})
	tests := []struct {
		body   string
		status int
		says   string
	}{
		{"{", 400, "not valid JSON"},
		{"null", 422, "want a JSON object"},
		{"30", 422, "want a JSON object"},
		{`{"timeout":-1}`, 422, "timeout: -1: want an integer"},
		{`{"timeout":1.5}`, 422, "timeout: 1.5: want an integer"},
		{`{"timeout":"30"}`, 422, `timeout: "30": want an integer`},
		{`{"timeout":4294967297}`, 400, "timeout: 4294967297: want an integer from 0 to 4294967296"},
		{`{"timeout":1,"timeout":2}`, 422, "given twice"},
		{`{"time_out":1}`, 422, `the nearest one is "timeout"`},
	}
	for _, tt := range tests {
		for _, path := range []string{"/drain", "/engines/0/drain"} {
			t.Run(path+" "+tt.body, func(t *testing.T) { wantError(t, a.call(t, "POST", path, tt.body), tt.status, tt.says) })
		}
	}
	wantError(t, a.call(t, "POST", "/drain", "{}", "Content-Type: text/plain"), http.StatusUnsupportedMediaType, "text/plain")
	wantError(t, a.call(t, "POST", "/engines/3/drain", "{"), http.StatusNotFound, "from 0 to 2")
}

func TestDrain_DeadAndFrozen(t *testing.T) {
	fleet := &fakeFleet{DrainEngineFunc: func(_ context.Context, i int, _ uint64) (ipc.Drain, error) {
		if i == 0 {
			return ipc.Drain{}, &supervisor.GoneError{Reason: "signal 9"}
		}
		return ipc.Drain{}, &supervisor.SilentError{Index: i, Rank: i}
	}}
	a := start(t, fleet, nil, Options{})
	wantError(t, a.call(t, "POST", "/engines/0/drain", ""), http.StatusInternalServerError, "engine 0 is gone: signal 9")
	wantError(t, a.call(t, "POST", "/engines/1/drain", ""), http.StatusGatewayTimeout, "engine 1 does not answer")
}

// FuzzDecodeDrain: whatever the body, the answer is an error of the client's or a time-out in its range.
func FuzzDecodeDrain(f *testing.F) {
	for _, seed := range []string{`{}`, `{"timeout":3}`, `{"timeout":null}`, `{"timeout":4294967297}`, `{"timeout":1e3}`, `[]`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		timeout, err := decodeDrain(body, 1)
		switch {
		case err != nil && statusOf(err) != 400 && statusOf(err) != 422:
			t.Errorf("status = %d (%v), want 400 or 422", statusOf(err), err)
		case err == nil && timeout > 1<<32:
			t.Errorf("timeout = %d, want at most 2^32", timeout)
		}
	})
}
