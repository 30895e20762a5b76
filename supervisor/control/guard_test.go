package control

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"vllm-vcr/config"
	"vllm-vcr/logs"
)

func TestGuard_Host(t *testing.T) {
	tests := []struct {
		bound, host string
		ok          bool
	}{
		{"127.0.0.1:8001", "localhost", true}, {"127.0.0.1:8001", "localhost:8001", true}, {"127.0.0.1:8001", "LocalHost:9", true},
		{"127.0.0.1:8001", "127.0.0.1:8001", true}, {"127.0.0.1:8001", "[::1]:8001", true}, {"127.0.0.1:8001", "[::1]", true},
		{"127.0.0.5:8001", "127.0.0.5:8001", true}, {"[::1]:8001", "[::1]:8001", true}, {"localhost:8001", "localhost:8001", true},
		{"", "localhost", true}, {"rubbish", "localhost", true},
		{"127.0.0.1:8001", "evil.test", false}, {"127.0.0.1:8001", "evil.test:8001", false}, {"127.0.0.1:8001", "localhost.evil.test", false},
		{"127.0.0.1:8001", "127.0.0.5", false}, {"127.0.0.1:8001", "localhost.", false},
		{"", "evil.test", false}, {"[::1]:8001", "evil.test", false},
		{"0.0.0.0:8001", "evil.test", true}, {"[::]:8001", "gateway:1", true}, {":8001", "any", true}, {"192.0.2.7:8001", "node7", true},
	}
	for _, tt := range tests {
		t.Run(tt.bound+" "+tt.host, func(t *testing.T) {
			fleet := &fakeFleet{ConfigFunc: func(context.Context) (config.Live, error) { return config.Live{}, nil }}
			got := start(t, fleet, nil, Options{Bound: orSpace(tt.bound)}).call(t, "GET", "/config", "", "Host: "+tt.host)
			if tt.ok && got.status != http.StatusOK {
				t.Errorf("answer = %d %s, want 200", got.status, got.body)
			}
			if !tt.ok {
				wantError(t, got, http.StatusMisdirectedRequest, "localhost, 127.0.0.1, [::1]")
			}
		})
	}
}

// orSpace keeps start from filling in the bound address.
func orSpace(bound string) string {
	if bound == "" {
		return " "
	}
	return bound
}

func TestGuard_HostOfRequestLine(t *testing.T) {
	fleet := &fakeFleet{ConfigFunc: func(context.Context) (config.Live, error) { return config.Live{}, nil }}
	a := start(t, fleet, nil, Options{})
	tests := []struct{ request, want string }{
		{"GET http://evil.test/config HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", "HTTP/1.1 421 "},
		{"GET http://127.0.0.1/config HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n", "HTTP/1.1 421 "},
		{"GET http://localhost/config HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 "},
		{"GET /config HTTP/1.0\r\n\r\n", "HTTP/1.1 421 "},
		{"GET /config HTTP/1.1\r\nHost: ::1\r\n\r\n", "HTTP/1.1 400 "},
		{"GET /config HTTP/1.1\r\nHost: localhost@evil.test\r\nConnection: close\r\n\r\n", "HTTP/1.1 421 "},
		{"GET /config HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
		{"GET /config HTTP/1.1\r\nHost: localhost\r\nHost: evil.test\r\n\r\n", "HTTP/1.1 400 "},
	}
	for _, tt := range tests {
		if got := a.raw(t, tt.request); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%q: answer = %q, want %s", tt.request, got, tt.want)
		}
	}
}

func TestGuard_Origin(t *testing.T) {
	ownPort := func(a *api) string { _, port, _ := net.SplitHostPort(a.addr); return port }
	tests := []struct {
		name   string
		wide   bool
		origin func(*api) string
		ok     bool
	}{
		{"foreign", false, func(*api) string { return "http://evil.test" }, false},
		{"foreign on a wide address", true, func(*api) string { return "http://evil.test" }, false},
		{"rebound name", true, func(a *api) string { return "http://evil.test:" + ownPort(a) }, false},
		{"null", false, func(*api) string { return "null" }, false},
		{"another port", false, func(*api) string { return "http://localhost:1" }, false},
		{"no port", false, func(*api) string { return "http://localhost" }, false},
		{"another scheme", false, func(a *api) string { return "https://localhost:" + ownPort(a) }, false},
		{"own", false, func(a *api) string { return "http://" + a.addr }, true},
		{"own name", false, func(a *api) string { return "http://localhost:" + ownPort(a) }, true},
		{"own on a wide address", true, func(a *api) string { return "http://" + a.addr }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var changes atomic.Int64
			fleet := &fakeFleet{ResetStatsFunc: func(context.Context) error { changes.Add(1); return nil }}
			a := start(t, fleet, nil, Options{}, func(s *Server) {
				if tt.wide {
					s.guard.loopback, s.guard.hosts = false, []string{"localhost"}
				}
			})
			got := a.call(t, "POST", "/stats/reset", "", "Origin: "+tt.origin(a))
			if tt.ok && (got.status != http.StatusNoContent || changes.Load() != 1) {
				t.Errorf("answer = %d, %d resets, want 204 and 1", got.status, changes.Load())
			}
			if !tt.ok {
				wantError(t, got, http.StatusForbidden, "origin")
				if changes.Load() != 0 {
					t.Error("the counters were reset")
				}
			}
		})
	}
}

func TestGuard_Preflight(t *testing.T) {
	a := start(t, &fakeFleet{}, nil, Options{})
	got := a.call(t, "OPTIONS", "/config", "", "Origin: http://evil.test", "Access-Control-Request-Method: PATCH")
	wantError(t, got, http.StatusForbidden, "evil.test")
	for name := range got.header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("answer has %s", name)
		}
	}
}

func TestGuard_Token(t *testing.T) {
	fleet := &fakeFleet{ConfigFunc: func(context.Context) (config.Live, error) { return config.Live{}, nil }}
	a := start(t, fleet, nil, Options{Token: "s3cret"})
	for _, authorization := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Bearer s3cre", "Bearer s3crets", "Bearer S3CRET", "Basic s3cret", "s3cret"} {
		got := a.call(t, "GET", "/config", "", "Authorization: "+authorization)
		wantError(t, got, http.StatusUnauthorized, "bearer token")
		if scheme := got.header.Get("WWW-Authenticate"); scheme != "Bearer" {
			t.Errorf("%q: WWW-Authenticate = %q, want Bearer", authorization, scheme)
		}
	}
	for _, authorization := range []string{"Bearer s3cret", "bearer s3cret"} {
		if got := a.call(t, "GET", "/config", "", "Authorization: "+authorization); got.status != http.StatusOK {
			t.Errorf("%q: status = %d, want 200", authorization, got.status)
		}
	}
	wantError(t, a.call(t, "GET", "/nothing", ""), http.StatusUnauthorized, "bearer token")
	wantError(t, a.call(t, "GET", "/health/live", ""), http.StatusUnauthorized, "bearer token")
}

func TestServer_WarnsWhenOpen(t *testing.T) {
	tests := []struct {
		bound, token string
		warns        bool
	}{{"127.0.0.1:1", "", false}, {"0.0.0.0:1", "", true}, {"[::]:1", "", true}, {"192.0.2.1:1", "", true}, {"0.0.0.0:1", "t", false}}
	for _, tt := range tests {
		var out bytes.Buffer
		filter, err := logs.ParseFilter("info")
		if err != nil {
			t.Fatal(err)
		}
		root := logs.New(&out, logs.JSON, filter)
		NewServer(&fakeFleet{}, nil, Options{Bound: tt.bound, Token: tt.token, Log: root.Target(logs.Control)}).announce(tt.bound)
		if err := root.Close(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), `"address":"`+tt.bound+`","message":"control API listening"`) {
			t.Errorf("%s: log = %s, want the address", tt.bound, out.String())
		}
		if got := strings.Contains(out.String(), `"level":"warn"`); got != tt.warns {
			t.Errorf("%s with token %q: warned = %v, want %v", tt.bound, tt.token, got, tt.warns)
		}
	}
}
