package control

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vllm-vcr/ipc"
	"vllm-vcr/supervisor"
)

// asking is a fleet that notes what it is asked and has two requests to show, of five.
type asking struct {
	fakeFleet
	asked []requestsQuery
}

func newAsking() *asking {
	f := &asking{}
	f.EngineRequestsFunc = func(_ context.Context, i int, q ipc.RequestQuery) (supervisor.Requests, error) {
		f.asked = append(f.asked, requestsQuery{q, i})
		return supervisor.Requests{Matched: 5, Dropped: 7, List: []supervisor.Request{
			{Engine: 2, Request: ipc.Request{
				ID: "cmpl-1-0-ab", ExternalID: "cmpl-1-0", Client: 1, State: ipc.RequestFailed, FinishReason: "error", Cause: "failure injection",
				PromptTokens: 4, MaxTokens: 16, OutputTokens: 2, LoRA: "poet", Number: 3,
				Arrived: 1_000_000_000, Admitted: 1_000_250_000, FirstToken: 1_030_000_400, Finished: 3_000_000_000,
			}},
			{Engine: 0, Request: ipc.Request{ID: "b", State: ipc.RequestWaiting, PromptTokens: 1, MaxTokens: 2, Number: 1, Arrived: 999_999_999}},
		}}, nil
	}
	f.RequestsFunc = func(ctx context.Context, q ipc.RequestQuery) (supervisor.Requests, error) {
		return f.EngineRequestsFunc(ctx, -1, q)
	}
	return f
}

func TestRequests(t *testing.T) {
	fleet := newAsking()
	got := start(t, fleet, nil, Options{}).call(t, "GET", "/requests?state=failed,waiting&limit=2", "")
	want := `{"requests":[` +
		`{"id":"cmpl-1-0-ab","external_id":"cmpl-1-0","engine":2,"client":1,"state":"failed","finish_reason":"error","cause":"failure injection",` +
		`"prompt_tokens":4,"max_tokens":16,"output_tokens":2,"lora":"poet","arrived":"1970-01-01T00:00:01.000000Z","admitted":"1970-01-01T00:00:01.000250Z",` +
		`"first_token":"1970-01-01T00:00:01.030000Z","finished":"1970-01-01T00:00:03.000000Z","queue_ms":0.25,"ttft_ms":30,"e2e_ms":2000},` +
		`{"id":"b","external_id":null,"engine":0,"client":0,"state":"waiting","finish_reason":null,"cause":null,` +
		`"prompt_tokens":1,"max_tokens":2,"output_tokens":0,"lora":null,"arrived":"1970-01-01T00:00:00.999999Z","admitted":null,` +
		`"first_token":null,"finished":null,"queue_ms":null,"ttft_ms":null,"e2e_ms":null}` +
		`],"matched":5,"cut":true,"dropped":7}`
	if got.status != http.StatusOK {
		t.Errorf("status = %d, want 200", got.status)
	}
	if diff := cmp.Diff(strings.Split(want, ","), strings.Split(got.body, ",")); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

// The query and the id reach the engines that are asked.
func TestRequests_Asked(t *testing.T) {
	fleet := newAsking()
	a := start(t, fleet, nil, Options{})
	tests := []struct {
		path string
		want requestsQuery
	}{
		{"/requests", requestsQuery{ipc.RequestQuery{Limit: 100}, -1}},
		{"/requests?", requestsQuery{ipc.RequestQuery{Limit: 100}, -1}},
		{"/requests?limit=10000&engine=0", requestsQuery{ipc.RequestQuery{Limit: 10000}, 0}},
		{"/requests?state=running", requestsQuery{ipc.RequestQuery{States: []string{"running"}, Limit: 100}, -1}},
		{"/requests?state=completed%2Caborted", requestsQuery{ipc.RequestQuery{States: []string{"completed", "aborted"}, Limit: 100}, -1}},
		{"/requests/cmpl-1", requestsQuery{ipc.RequestQuery{ID: "cmpl-1", Limit: 100}, -1}},
		{"/requests/a%2Fb%20%C3%A9?engine=2&limit=1", requestsQuery{ipc.RequestQuery{ID: "a/b é", Limit: 1}, 2}},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			fleet.asked = nil
			if got := a.call(t, "GET", tt.path, ""); got.status != http.StatusOK {
				t.Fatalf("answer = %d %s, want 200", got.status, got.body)
			}
			if diff := cmp.Diff([]requestsQuery{tt.want}, fleet.asked, cmp.AllowUnexported(requestsQuery{})); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// What is refused names the fault and what is allowed, and asks nobody: a fleet that is asked panics.
func TestRequests_Refused(t *testing.T) {
	a := start(t, &fakeFleet{}, nil, Options{})
	for query, says := range map[string]string{
		"states=running":             `"states": unknown parameter, want one of state, limit, engine`,
		"State=running":              `"State": unknown parameter`,
		"=":                          `"": unknown parameter`,
		"state=":                     `state: "": want one or more of waiting, running, completed, failed, aborted, separated by commas`,
		"state":                      `state: "": want one or more of`,
		"state=running,":             `state: "": want`,
		"state=running,%20failed":    `state: " failed": want`,
		"state=Running":              `state: "Running": want`,
		"state=failed&state=a":       `state: given twice`,
		"limit=0":                    `limit: "0": want an integer from 1 to 10000`,
		"limit=10001":                `limit: "10001": want`,
		"limit=1e3":                  `limit: "1e3": want`,
		"limit=%2B1":                 `limit: "+1": want`,
		"limit=99999999999999999999": `limit: "99999999999999999999": want`,
		"engine=3":                   `engine: "3": want an integer from 0 to 2`,
		"engine=-1":                  `engine: "-1": want`,
		"engine=00":                  `engine: "00": want`,
		"limit=1;engine=1":           `the query cannot be read: `,
		"limit=%zz":                  `the query cannot be read: `,
		"limit=x&zoo=1&engine=9":     `engine: "9"`,
	} {
		for _, path := range []string{"/requests?", "/requests/a?"} {
			t.Run(path+query, func(t *testing.T) {
				wantError(t, a.call(t, "GET", path+query, ""), http.StatusBadRequest, says)
			})
		}
	}
}

func TestRequest_NotFound(t *testing.T) {
	fleet := &fakeFleet{RequestsFunc: func(context.Context, ipc.RequestQuery) (supervisor.Requests, error) {
		return supervisor.Requests{Dropped: 3}, nil
	}}
	a := start(t, fleet, nil, Options{})
	wantError(t, a.call(t, "GET", "/requests/nobody", ""), http.StatusNotFound, `no request "nobody" is there or remembered; 3 finished ones were dropped`)
	if got := a.call(t, "GET", "/requests", ""); got.status != http.StatusOK || got.body != `{"requests":[],"matched":0,"cut":false,"dropped":3}` {
		t.Errorf("answer = %d %s, want 200 and an empty list", got.status, got.body)
	}
}

func TestRequests_DeadAndFrozen(t *testing.T) {
	var err error
	fleet := &fakeFleet{RequestsFunc: func(context.Context, ipc.RequestQuery) (supervisor.Requests, error) {
		return supervisor.Requests{}, err
	}}
	a := start(t, fleet, nil, Options{})
	for _, path := range []string{"/requests", "/requests/a"} {
		err = &supervisor.GoneError{Index: 1, Rank: 1, Reason: "signal 9"}
		wantError(t, a.call(t, "GET", path, ""), http.StatusInternalServerError, "engine 1 is gone: signal 9")
		err = &supervisor.SilentError{Index: 1, Rank: 1}
		wantError(t, a.call(t, "GET", path, ""), http.StatusGatewayTimeout, "engine 1 does not answer")
	}
}

// FuzzDecodeQuery: a query that is accepted says something that can be said again, and means the same then.
func FuzzDecodeQuery(f *testing.F) {
	for _, seed := range []string{"", "state=running,failed&limit=7", "engine=1", "limit=%31", "state=a;b", "limit=1&limit=1", "%", "state=running%2cfailed"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := decodeQuery(raw, 3)
		if err != nil {
			if statusOf(err) != http.StatusBadRequest {
				t.Errorf("status = %d (%v), want 400", statusOf(err), err)
			}
			return
		}
		again := url.Values{"limit": {fmt.Sprint(got.Limit)}}
		if got.engine >= 0 {
			again.Set("engine", fmt.Sprint(got.engine))
		}
		if len(got.States) > 0 {
			again.Set("state", strings.Join(got.States, ","))
		}
		second, err := decodeQuery(again.Encode(), 3)
		if diff := cmp.Diff(got, second, cmp.AllowUnexported(requestsQuery{})); err != nil || diff != "" {
			t.Errorf("%q, said again as %q: %v (-first +second)\n%s", raw, again.Encode(), err, diff)
		}
	})
}
