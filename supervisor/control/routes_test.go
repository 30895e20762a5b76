package control

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/supervisor"
)

// countingFleet works, and counts what it was asked to read and to change.
func countingFleet(reads, changes *atomic.Int64) *fakeFleet {
	live := config.Default().Live
	read := func() (config.Live, error) { reads.Add(1); return live, nil }
	change := func() (config.Live, error) { changes.Add(1); return live, nil }
	return &fakeFleet{
		ConfigFunc:       func(context.Context) (config.Live, error) { return read() },
		EngineConfigFunc: func(context.Context, int) (config.Live, error) { return read() },
		StatsFunc:        func(context.Context) (ipc.Stats, error) { reads.Add(1); return ipc.Stats{}, nil },
		EngineStatsFunc:  func(context.Context, int) (ipc.Stats, error) { reads.Add(1); return ipc.Stats{}, nil },
		EnginesFunc: func(context.Context) []supervisor.EngineStatus {
			reads.Add(1)
			return []supervisor.EngineStatus{{State: supervisor.StateReady}}
		},
		HealthFunc: func(context.Context) supervisor.Health {
			reads.Add(1)
			return supervisor.Health{Status: supervisor.HealthOK}
		},
		PatchFunc:       func(context.Context, config.Patch) (config.Live, error) { return change() },
		PatchEngineFunc: func(context.Context, int, config.Patch) (config.Live, error) { return change() },
		ResetConfigFunc: func(context.Context) (config.Live, error) { return change() },
		ResetStatsFunc:  func(context.Context) error { changes.Add(1); return nil },
		DrainFunc:       func(context.Context, uint64) (ipc.Drain, error) { changes.Add(1); return ipc.Drain{}, nil },
		DrainEngineFunc: func(context.Context, int, uint64) (ipc.Drain, error) { changes.Add(1); return ipc.Drain{}, nil },

		RequestsFunc: func(context.Context, ipc.RequestQuery) (supervisor.Requests, error) {
			reads.Add(1)
			return supervisor.Requests{Matched: 1}, nil
		},

		ResetEngineConfigFunc: func(context.Context, int) (config.Live, error) { return change() },
		ResetEngineStatsFunc:  func(context.Context, int) error { changes.Add(1); return nil },

		ArmFaultFunc: func(context.Context, ipc.Fault) (supervisor.FaultStatus, error) {
			changes.Add(1)
			return supervisor.FaultStatus{}, nil
		},
		FaultsFunc:      func(context.Context) (supervisor.Faults, error) { reads.Add(1); return supervisor.Faults{}, nil },
		ClearFaultFunc:  func(context.Context, uint64) error { changes.Add(1); return nil },
		ClearFaultsFunc: func(context.Context) error { changes.Add(1); return nil },
	}
}

// Every route with every method: what is allowed works, what is not is a 405 that lists what is, and only the methods
// that may change something do.
func TestRoutes(t *testing.T) {
	allowed := map[string]string{
		"/config":                 "GET, HEAD, PATCH",
		"/config/reset":           "POST",
		"/stats":                  "GET, HEAD",
		"/stats/reset":            "POST",
		"/drain":                  "POST",
		"/faults":                 "GET, HEAD, POST, DELETE",
		"/faults/3":               "DELETE",
		"/log":                    "GET, HEAD, PUT",
		"/health":                 "GET, HEAD",
		"/health/ready":           "GET, HEAD",
		"/health/live":            "GET, HEAD",
		"/engines":                "GET, HEAD",
		"/requests":               "GET, HEAD",
		"/requests/cmpl-1":        "GET, HEAD",
		"/engines/0/config":       "GET, HEAD, PATCH",
		"/engines/1/config/reset": "POST",
		"/engines/2/stats":        "GET, HEAD",
		"/engines/0/stats/reset":  "POST",
		"/engines/1/drain":        "POST",
		"/metrics":                "GET, HEAD",
	}
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE"}
	for path, allow := range allowed {
		for _, method := range methods {
			t.Run(method+" "+path, func(t *testing.T) {
				var reads, changes atomic.Int64
				filter := &fakeFilter{filter: "info"}
				a := start(t, countingFleet(&reads, &changes), filter, Options{})
				body := ""
				switch method {
				case "PATCH":
					body = `{"max_num_seqs":1}`
				case "PUT":
					body = `{"filter":"warn"}`
				case "POST":
					if path == "/faults" {
						body = `{"kind":"error"}`
					}
				}
				got := a.call(t, method, path, body)
				checkRoute(t, got, method, allow)
				mutates := method == "POST" || method == "PATCH" || method == "PUT" || method == "DELETE"
				if changed := changes.Load() + boolCount(filter.filter != "info"); changed > boolCount(mutates && got.status < 300) {
					t.Errorf("%d changes, status %d", changed, got.status)
				}
			})
		}
	}
}

func boolCount(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func checkRoute(t *testing.T, got reply, method, allow string) {
	t.Helper()
	if isAllowed := strings.Contains(", "+allow+",", " "+method+","); !isAllowed {
		if got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") != allow {
			t.Errorf("answer = %d, Allow %q, want 405, Allow %q", got.status, got.header.Get("Allow"), allow)
		}
		if method != "HEAD" {
			wantError(t, got, http.StatusMethodNotAllowed, method)
		}
	} else if got.status < http.StatusOK || got.status > http.StatusAccepted && got.status != http.StatusNoContent {
		t.Errorf("status = %d, want 200, 201, 202 or 204", got.status)
	}
	if method == "HEAD" && got.body != "" {
		t.Errorf("body of HEAD = %q, want none", got.body)
	}
	if origin := got.header.Get("Access-Control-Allow-Origin"); origin != "" {
		t.Errorf("Access-Control-Allow-Origin = %q, want none", origin)
	}
}

func TestRoutes_NotFound(t *testing.T) {
	a := start(t, &fakeFleet{}, nil, Options{})
	for _, path := range []string{
		"/", "/config/", "//config", "/CONFIG", "/conf%69g", "/a/../config", "/./config", "/config/x", "/%2e%2e/config",
		"/stats/reset/", "/drain/", "/requests/", "/requests/a/b", "/engines/", "/engines/0", "/engines/0/", "/engines/0/reset", "/favicon.ico", "/config;x=1", "/\"<&>",
		"/engines/3/config", "/engines/-1/config", "/engines/00/config", "/engines/+1/config", "/engines/x/stats",
		"/engines/1.0/stats", "/engines/%31/stats", "/engines/99999999999999999999/config", "/engines//config",
	} {
		got := a.raw(t, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		head, body, _ := strings.Cut(got, "\r\n\r\n")
		if !strings.HasPrefix(head, "HTTP/1.1 404 ") || !strings.HasPrefix(body, `{"error":"no `) {
			t.Errorf("%s: answer = %s, want a 404 in JSON", path, got)
		}
	}
	got := a.raw(t, "HEAD /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 404 ") || !strings.HasSuffix(got, "\r\n\r\n") {
		t.Errorf("HEAD: answer = %q, want a 404 without a body", got)
	}
	got = a.raw(t, "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 404 ") {
		t.Errorf("OPTIONS *: answer = %q, want a 404", got)
	}
}

func TestRoutes_QueryIsIgnored(t *testing.T) {
	var reads, changes atomic.Int64
	a := start(t, countingFleet(&reads, &changes), nil, Options{})
	if got := a.call(t, "GET", "/config?a=b&/stats", ""); got.status != http.StatusOK {
		t.Errorf("status = %d, want 200", got.status)
	}
}

// The index in the path reaches the fleet, and a wrong one is refused before the body is looked at.
func TestRoutes_EngineIndex(t *testing.T) {
	var asked []int
	fleet := &fakeFleet{
		PatchEngineFunc: func(_ context.Context, i int, _ config.Patch) (config.Live, error) {
			asked = append(asked, i)
			return config.Live{}, errors.New("enough")
		},
	}
	a := start(t, fleet, nil, Options{})
	a.call(t, "PATCH", "/engines/0/config", "{}")
	a.call(t, "PATCH", "/engines/2/config", "{}")
	wantError(t, a.call(t, "PATCH", "/engines/3/config", "{", "Content-Type: text/plain"), http.StatusNotFound, "from 0 to 2")
	if len(asked) != 2 || asked[0] != 0 || asked[1] != 2 {
		t.Errorf("engines asked = %v, want 0 and 2", asked)
	}
}
