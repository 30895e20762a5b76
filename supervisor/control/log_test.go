package control

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"vllm-vcr/logs"
)

func TestLog(t *testing.T) {
	filter := &fakeFilter{filter: "info"}
	a := start(t, &fakeFleet{}, filter, Options{})
	tests := []struct{ body, want string }{
		{`{"filter":"vllm_vcr=debug,warn"}`, `{"filter":"vllm_vcr=debug,warn"}`},
		{`{"filter":" INFO "}`, `{"filter":"info"}`},
		{`{"filter":""}`, `{"filter":""}`},
		{`{"filter":"3"}`, `{"filter":"info"}`},
		{`{"filter":"vllm_vcr"}`, `{"filter":"vllm_vcr=trace"}`},
	}
	for _, tt := range tests {
		if got := a.call(t, "PUT", "/log", tt.body); got.status != http.StatusOK || got.body != tt.want {
			t.Errorf("PUT %s = %d %s, want 200 %s", tt.body, got.status, got.body, tt.want)
		}
		if got := a.call(t, "GET", "/log", ""); got.status != http.StatusOK || got.body != tt.want {
			t.Errorf("GET after %s = %d %s, want 200 %s", tt.body, got.status, got.body, tt.want)
		}
	}
}

func TestLog_Refused(t *testing.T) {
	filter := &fakeFilter{filter: "info"}
	a := start(t, &fakeFleet{}, filter, Options{})
	tests := []struct {
		contentType, body string
		status            int
		says              string
	}{
		{"text/plain", `{`, 415, "text/plain"},
		{"application/json", strings.Repeat(" ", bodyLimit+1), 413, "2097152"},
		{"application/json", `{"filter":`, 400, "valid JSON"},
		{"application/json", `null`, 422, "object"},
		{"application/json", `{}`, 422, "filter: missing"},
		{"application/json", `{"filter":null}`, 422, "filter: null"},
		{"application/json", `{"filter":3}`, 422, "filter: 3"},
		{"application/json", `{"filter":["info"]}`, 422, "want a string"},
		{"application/json", `{"Filter":"info"}`, 422, `"Filter": unknown key, the nearest one is "filter"`},
		{"application/json", `{"filter":"info","level":"x"}`, 422, `"level"`},
		{"application/json", `{"filter":"info","filter":"warn"}`, 422, "twice"},
		{"application/json", `{"filter":"vllm_vcr=loud"}`, 400, `invalid log filter: "vllm_vcr=loud": level "loud"`},
		{"application/json", `{"filter":"` + strings.Repeat("a,", logs.MaxFilter) + `"}`, 400, "invalid log filter: 131072 bytes"},
	}
	for _, tt := range tests {
		wantError(t, a.call(t, "PUT", "/log", tt.body, "Content-Type: "+tt.contentType), tt.status, tt.says)
		if filter.filter != "info" {
			t.Errorf("%s changed the filter to %q", shorten(tt.body), filter.filter)
		}
	}
}

func TestLog_ApplyFails(t *testing.T) {
	a := start(t, &fakeFleet{}, &fakeFilter{err: errors.New("no way")}, Options{})
	wantError(t, a.call(t, "PUT", "/log", `{"filter":"info"}`), http.StatusInternalServerError, "no way")
}

// Without a filter: 501, behind the checks of the body and before the filter is parsed.
func TestLog_None(t *testing.T) {
	a := start(t, &fakeFleet{}, nil, Options{})
	wantError(t, a.call(t, "GET", "/log", ""), http.StatusNotImplemented, "no log filter")
	wantError(t, a.call(t, "PUT", "/log", `{"filter":"a=loud"}`), http.StatusNotImplemented, "no log filter")
	wantError(t, a.call(t, "PUT", "/log", `{}`), http.StatusUnprocessableEntity, "missing")
}
