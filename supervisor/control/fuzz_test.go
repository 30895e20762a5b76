package control

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/valyala/fasthttp"

	"vllm-vcr/config"
	"vllm-vcr/fuzzlimit"
	"vllm-vcr/ipc"
)

// FuzzDecodePatch: a body that is accepted is one that encoding/json takes too, under the strictest rules it has; it can
// be applied; and applying it twice is the same as once.
func FuzzDecodePatch(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"max_num_seqs":4}`, `{"failure_types":["error","length"],"log_requests":true}`, `{"failure_injection_rate":1e-400}`,
		`{"max_num_seqs":4,"max_num_seqs":5}`, `{"MAX_NUM_SEQS":4}`, `null`, `[1]`, `{} x`, `{"a":1e400}`, "{\"a\":\"\xff\"}",
		`{"max_num\u005fseqs":null}`, `{"failure_types":[null]}`, `{"failure_types":["\ud800"]}`, `{"time_factor_under_load":-0.0}`, " {\n\"max_model_len\" : 0 } ",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		defer fuzzlimit.Watch(t, len(body))()
		patch, err := decodePatch(body)
		if err != nil {
			if status := statusOf(err); status != 400 && status != 422 {
				t.Errorf("status = %d (%v), want 400 or 422", status, err)
			}
			return
		}
		checkStrict[config.Live](t, body)
		start := config.Default().Live
		once, err := patch.Apply(start)
		if err != nil {
			t.Fatalf("an accepted patch cannot be applied: %v", err)
		}
		twice, err := patch.Apply(once)
		if diff := cmp.Diff(once, twice, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("applied again (%v):\n%s", err, diff)
		}
	})
}

// checkStrict fails for an accepted body that encoding/json would refuse.
func checkStrict[T any](t *testing.T, body []byte) {
	t.Helper()
	if !utf8.Valid(body) {
		t.Errorf("accepted without being UTF-8: %q", body)
	}
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.DisallowUnknownFields()
	var value *T
	if err := dec.Decode(&value); err != nil || value == nil {
		t.Errorf("accepted, but encoding/json says %v for %q", err, body)
	}
	if dec.More() {
		t.Errorf("accepted with more behind it: %q", body)
	}
}

// FuzzDecodeFault: a body that is accepted is one that encoding/json takes too, under the strictest rules it has; what came of
// it is in range, and its own JSON form means the same.
func FuzzDecodeFault(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"kind":"error"}`, `{"kind":"stall","delay":5,"after_tokens":3,"count":2,"engine":1}`, `{"kind":"crash"}`, `{"kind":"hang","duration":9}`,
		`{"kind":"slow_handshake","delay":1}`, `{"kind":"error","kind":"stall"}`, `{"KIND":"error"}`, `null`, `{"kind":null}`, `{"kind":"error","count":1e400}`,
		`{"kind":"error"} x`, "{\"kind\":\"\xff\"}", `{"k\u0069nd":"error","count":18446744073709551615}`, `{"kind":"error","engine":3}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		defer fuzzlimit.Watch(t, len(body))()
		const engines = 3
		fault, err := decodeFault(body, engines)
		if err != nil {
			if status := statusOf(err); status != 400 && status != 422 {
				t.Errorf("status = %d (%v), want 400 or 422", status, err)
			}
			return
		}
		checkStrict[ipc.Fault](t, body)
		if e := fault.Engine; e != nil && (*e < 0 || *e >= engines) || fault.Duration > ipc.MaxFaultTime || fault.Delay > ipc.MaxFaultTime {
			t.Errorf("accepted out of range: %+v", fault)
		}
		var form map[string]json.RawMessage
		raw, err := json.Marshal(fault)
		if err == nil {
			err = json.Unmarshal(raw, &form)
		}
		if err != nil {
			t.Fatal(err)
		}
		delete(form, "id")
		if raw, err = json.Marshal(form); err != nil {
			t.Fatal(err)
		}
		again, err := decodeFault(raw, engines)
		if diff := cmp.Diff(fault, again); diff != "" || err != nil {
			t.Errorf("%s decodes to another fault: %v\n%s", raw, err, diff)
		}
	})
}

// FuzzReadLogFilter: a body is a filter or an error of the client's, and a filter is one that encoding/json finds there too.
func FuzzReadLogFilter(f *testing.F) {
	for _, seed := range []string{
		`{"filter":"info"}`, `{"filter":"vllm_vcr::engine=trace,info"}`, `{"filter":null}`, `{"filter":"a","filter":"b"}`, `{"Filter":"a"}`, `{}`, `[`, `{"filter":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		defer fuzzlimit.Watch(t, len(body))()
		var ctx fasthttp.RequestCtx
		ctx.Request.Header.SetContentType("application/json")
		ctx.Request.SetBody(body)
		got, err := readLogFilter(&ctx)
		if err != nil {
			if status := statusOf(err); status != 400 && status != 413 && status != 422 {
				t.Errorf("status = %d (%v), want 400, 413 or 422", status, err)
			}
			return
		}
		var want struct{ Filter string }
		if err := json.Unmarshal(body, &want); err != nil || got != want.Filter {
			t.Errorf("%q is the filter %q, encoding/json says %q, %v", body, got, want.Filter, err)
		}
	})
}
