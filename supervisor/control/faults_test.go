package control

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vllm-vcr/ipc"
	"vllm-vcr/supervisor"
)

func ptr[T any](v T) *T { return &v }

func TestDecodeFault(t *testing.T) {
	tests := []struct {
		body string
		want ipc.Fault
	}{
		{`{"kind":"error"}`, ipc.Fault{Kind: "error", Count: 1}},
		{" {\n\"kind\" : \"l\\u0065ngth\" , \"count\":null,\"engine\":null} ", ipc.Fault{Kind: "length", Count: 1}},
		{`{"engine":2,"count":18446744073709551615,"kind":"repetition"}`, ipc.Fault{Kind: "repetition", Engine: ptr(2), Count: math.MaxUint64}},
		{`{"kind":"error","duration":500}`, ipc.Fault{Kind: "error", Duration: 500}},
		{`{"kind":"error","duration":500,"count":3,"after_tokens":0}`, ipc.Fault{Kind: "error", Duration: 500, Count: 3, AfterTokens: ptr[uint64](0)}},
		{`{"kind":"stall","delay":20,"after_tokens":7}`, ipc.Fault{Kind: "stall", Count: 1, Delay: 20, AfterTokens: ptr[uint64](7)}},
		{`{"kind":"crash"}`, ipc.Fault{Kind: "crash"}},
		{`{"kind":"crash","engine":0}`, ipc.Fault{Kind: "crash", Engine: ptr(0)}},
		{`{"kind":"crash","after_tokens":0}`, ipc.Fault{Kind: "crash", Count: 1, AfterTokens: ptr[uint64](0)}},
		{`{"kind":"crash","count":1}`, ipc.Fault{Kind: "crash", Count: 1}},
		{`{"kind":"crash","duration":1}`, ipc.Fault{Kind: "crash", Duration: 1}},
		{`{"kind":"hang"}`, ipc.Fault{Kind: "hang"}},
		{`{"kind":"hang","duration":31536000000}`, ipc.Fault{Kind: "hang", Duration: ipc.MaxFaultTime}},
		{`{"kind":"slow_handshake","delay":31536000000,"count":2}`, ipc.Fault{Kind: "slow_handshake", Count: 2, Delay: ipc.MaxFaultTime}},
	}
	for _, tt := range tests {
		t.Run(tt.body, func(t *testing.T) {
			got, err := decodeFault([]byte(tt.body), 3)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("fault: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestDecodeFault_Refused(t *testing.T) {
	tests := []struct {
		body   string
		status int
		says   string
	}{
		{``, 400, "valid JSON"}, {`{"kind":"error"} x`, 400, "valid JSON"}, {"{\"kind\":\"\xff\"}", 400, "UTF-8"}, {`{"kind":"error","count":1e400}`, 400, "1e400"},
		{`null`, 422, "object"}, {`[]`, 422, "object"}, {`"error"`, 422, "object"},
		{`{}`, 422, "kind: missing, want one of error, length, repetition, stall, crash, hang, slow_handshake"}, {`{"kind":null}`, 422, "kind: missing"},
		{`{"kind":"errors"}`, 422, `kind: "errors": want one of error,`}, {`{"kind":"Error"}`, 422, "want one of"}, {`{"kind":1}`, 422, "kind: 1: want one of"}, {`{"kind":""}`, 422, "want one of"},
		{`{"kind":"error","kind":"stall"}`, 422, "kind: given twice"}, {`{"kind":"error","k\u0069nd":"stall"}`, 422, "twice"},
		{`{"Kind":"error"}`, 422, `"Kind": unknown key, the nearest one is "kind"`}, {`{"kind":"error","after_token":3}`, 422, `"after_tokens"`}, {`{"kind":"error","id":3}`, 422, "unknown key"},
		{`{"kind":"error","count":1.0}`, 422, "count: 1.0: want an integer"}, {`{"kind":"error","count":"1"}`, 422, "want an integer"}, {`{"kind":"error","count":-1}`, 422, "-1"},
		{`{"kind":"error","count":18446744073709551616}`, 422, "want an integer"}, {`{"kind":"error","engine":true}`, 422, "engine: true"}, {`{"kind":"error","engine":[0]}`, 422, "[0]"},
		{`{"kind":"error","delay":1}`, 422, "delay: 1: a fault of kind error has none"}, {`{"kind":"hang","count":1}`, 422, "count: 1: a fault of kind hang has none"},
		{`{"kind":"hang","after_tokens":0}`, 422, "after_tokens: 0: a fault of kind hang has none"}, {`{"kind":"slow_handshake","delay":1,"after_tokens":1}`, 422, "after_tokens"},
		{`{"kind":"stall"}`, 422, "delay: missing"}, {`{"kind":"slow_handshake","delay":null}`, 422, "delay: missing"},
		{`{"kind":"error","engine":3}`, 400, "engine: 3: want an integer from 0 to 2"}, {`{"kind":"error","engine":18446744073709551615}`, 400, "from 0 to 2"},
		{`{"kind":"error","count":0}`, 400, "count: 0: want an integer from 1"},
		{`{"kind":"stall","delay":0,"duration":0,"count":0,"engine":9}`, 400,
			"engine: 9: want an integer from 0 to 2; count: 0: want an integer from 1 to 18446744073709551615; " +
				"duration: 0: want an integer from 1 to 31536000000; delay: 0: want an integer from 1 to 31536000000"},
		{`{"kind":"hang","duration":31536000001}`, 400, "31536000001"},
	}
	for _, tt := range tests {
		t.Run(tt.body, func(t *testing.T) {
			_, err := decodeFault([]byte(tt.body), 3)
			wantFault(t, err, tt.status, tt.says)
		})
	}
}

func TestFaults(t *testing.T) {
	var armed []ipc.Fault
	var cleared []uint64
	fleet := &fakeFleet{
		ArmFaultFunc: func(_ context.Context, f ipc.Fault) (supervisor.FaultStatus, error) {
			armed = append(armed, f)
			f.ID = 7
			return supervisor.FaultStatus{Fault: f, Engines: []supervisor.FaultOnEngine{{Engine: 1, Active: true, Remaining: ptr[uint64](2)}}}, nil
		},
		FaultsFunc: func(context.Context) (supervisor.Faults, error) {
			return supervisor.Faults{Faults: []supervisor.FaultStatus{}, Applied: ipc.FaultCounts{1, 0, 0, 4}}, nil
		},
		ClearFaultFunc: func(_ context.Context, id uint64) error {
			cleared = append(cleared, id)
			if id != 7 {
				return supervisor.ErrNoFault
			}
			return nil
		},
		ClearFaultsFunc: func(context.Context) error { cleared = append(cleared, 0); return nil },
	}
	a := start(t, fleet, nil, Options{})
	got := a.call(t, "POST", "/faults", `{"kind":"error","engine":1,"count":2}`)
	want := `{"id":7,"kind":"error","engine":1,"count":2,"engines":[{"engine":1,"active":true,"applied":0,"remaining":2}]}`
	if got.status != http.StatusCreated || got.body != want {
		t.Errorf("POST = %d %s, want 201 %s", got.status, got.body, want)
	}
	got = a.call(t, "GET", "/faults", "")
	want = `{"faults":[],"applied":{"crash":0,"error":1,"hang":0,"length":0,"repetition":0,"slow_handshake":0,"stall":4}}`
	if got.status != http.StatusOK || got.body != want {
		t.Errorf("GET = %d %s, want 200 %s", got.status, got.body, want)
	}
	for _, path := range []string{"/faults/7", "/faults"} {
		if got := a.call(t, "DELETE", path, ""); got.status != http.StatusNoContent || got.body != "" {
			t.Errorf("DELETE %s = %d %s, want 204", path, got.status, got.body)
		}
	}
	wantError(t, a.call(t, "DELETE", "/faults/8", ""), http.StatusNotFound, "no such fault is active")
	wantError(t, a.call(t, "DELETE", "/faults?kind=error", ""), http.StatusBadRequest, `query "kind=error" and a body of 0 bytes`)
	wantError(t, a.call(t, "DELETE", "/faults", `{"kind":"error"}`), http.StatusBadRequest, "a body of 16 bytes")
	for _, id := range []string{"07", "x", "-1", "18446744073709551616", "7.0"} {
		wantError(t, a.call(t, "DELETE", "/faults/"+id, ""), http.StatusNotFound, fmt.Sprintf("fault %q: no such fault", id))
	}
	wantError(t, a.call(t, "POST", "/faults", `{"kind":"flood"}`), http.StatusUnprocessableEntity, "flood")
	wantError(t, a.call(t, "POST", "/faults", `{"kind":"error"}`, "Content-Type: text/plain"), http.StatusUnsupportedMediaType, "text/plain")
	if len(armed) != 1 || !cmp.Equal(cleared, []uint64{7, 0, 8}) {
		t.Errorf("armed %v and cleared %v, want one, and 7, all, 8", armed, cleared)
	}
}

func TestFaults_Refused(t *testing.T) {
	fleet := &fakeFleet{ArmFaultFunc: func(context.Context, ipc.Fault) (supervisor.FaultStatus, error) {
		return supervisor.FaultStatus{}, supervisor.ErrTooManyFaults
	}}
	wantError(t, start(t, fleet, nil, Options{}).call(t, "POST", "/faults", `{"kind":"error"}`), http.StatusConflict, "64 faults are active")
}

// wantFault checks an error of the API's own.
func wantFault(t *testing.T, err error, status int, says string) {
	t.Helper()
	var f *fault
	if !errors.As(err, &f) || f.status != status || !strings.Contains(f.text, says) {
		t.Errorf("error = %v, want a %d with %q", err, status, says)
	}
}
