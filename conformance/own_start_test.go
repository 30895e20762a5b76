//go:build conformance

package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// TestOwnStart_Waiting starts the front end long before its engine: it answers, says that it isn't ready, and refuses what needs an engine; once the
// engine has joined it is ready.
func TestOwnStart_Waiting(t *testing.T) {
	srv := prepare(t, setup{version: "0.33.0"})
	srv.frontend = launch(t, "frontend", nil, append(engineCommand(), "frontend", "--model", modelName, "--port", strconv.Itoa(srv.ports.http),
		"--handshake-address", fmt.Sprintf("tcp://127.0.0.1:%d", srv.ports.handshake))...)
	proctest.Eventually(t, startupLimit, func() error { return srv.http.healthy("/version") })
	for _, path := range []string{"/health", "/ready"} {
		if err := jsonError(srv.http.call(t, http.MethodGet, path, ""), http.StatusServiceUnavailable); err != nil {
			t.Errorf("%s before an engine: %v", path, err)
		}
	}
	srv.http.expect(t, http.StatusOK, http.MethodGet, "/v1/models", "")
	srv.http.expect(t, http.StatusOK, http.MethodGet, "/metrics", "")
	if err := jsonError(srv.http.call(t, http.MethodPost, "/v1/completions", `{"prompt": "x"}`), http.StatusServiceUnavailable); err != nil {
		t.Errorf("request before an engine: %v", err)
	}
	srv.startEngines(t)
	srv.waitReady(t)
	srv.http.expect(t, http.StatusOK, http.MethodGet, "/ready", "")
	if err := srv.mustAsk(t, completion(5)).complete(1, 5); err != nil {
		t.Error(err)
	}
}

// TestOwnStart_RealName serves a model by the name of a real one: nothing is looked for, and two seconds are enough.
func TestOwnStart_RealName(t *testing.T) {
	const name = "Qwen/Qwen3-32B"
	start := time.Now()
	srv := ownServer(t, 1, "--model", name)
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("ready after %v, want at most 2s", took)
	}
	q := chat(5)
	q.Model = name
	if err := srv.mustAsk(t, q).complete(1, 5); err != nil {
		t.Error(err)
	}
	if got := srv.mustAsk(t, chat(5)); got.status != http.StatusNotFound {
		t.Errorf("another name: status = %d, want %d", got.status, http.StatusNotFound)
	}
}

// TestOwnStart_NoNetwork starts serve where there is no network but its own loopback, and asks it there.
func TestOwnStart_NoNetwork(t *testing.T) {
	program, err := filepath.Abs(engineCommand()[0])
	if err != nil {
		t.Fatal(err)
	}
	argv := append([]string{sdkPython(), filepath.Join("testdata", "alone.py"), program}, engineCommand()[1:]...)
	ctx, cancel := context.WithTimeout(t.Context(), startupLimit)
	defer cancel()
	printed, err := isolated(ctx, argv).CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("nobody here may make a network of their own")
	}
	if err != nil {
		t.Errorf("alone: %v\n%s", err, printed)
	}
}

// TestOwnStart_PortTaken wants a port that another has: the message names it, and nothing is left.
func TestOwnStart_PortTaken(t *testing.T) {
	first := ownServer(t, 1)
	second := prepare(t, setup{})
	second.ports.http = first.ports.http
	second.startOwn(t, nil)
	family := proctest.Children(t, second.engines.cmd.Process.Pid)
	if code := second.engines.waitExit(t, 10*time.Second); code != 1 {
		t.Errorf("exit code = %d, want 1", code)
	}
	if printed, port := second.engines.printed(t), strconv.Itoa(first.ports.http); !strings.Contains(printed, port) {
		t.Errorf("printed %q, want the port %s in it", printed, port)
	}
	proctest.AwaitGone(t, 2*time.Second, family...)
}
