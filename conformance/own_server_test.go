//go:build conformance

package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"vllm-vcr/proctest"
)

// ownServer starts serve, our engines behind our own front end, and waits until all of it is ready. The process is both ends of the
// server: its frontend and its engines.
func ownServer(t *testing.T, engines int, flags ...string) *server {
	t.Helper()
	srv := prepare(t, setup{engines: engines})
	srv.startOwn(t, nil, flags...)
	srv.waitReady(t)
	return srv
}

// startOwn starts serve, under the words of a command that runs its arguments.
func (s *server) startOwn(t *testing.T, under []string, flags ...string) {
	t.Helper()
	argv := append(under, engineCommand()...)
	argv = append(argv, "serve", "--engine-count", strconv.Itoa(s.setup.engines), "--port", strconv.Itoa(s.ports.http),
		"--control-address", fmt.Sprintf("127.0.0.1:%d", s.ports.control))
	if !named(flags) {
		argv = append(argv, "--model", modelName)
	}
	s.engines = launch(t, "serve", nil, append(argv, flags...)...)
	s.frontend = s.engines
}

// named says whether flags name the model.
func named(flags []string) bool {
	for _, flag := range flags {
		if flag == "--model" {
			return true
		}
	}
	return false
}

// foreignServer starts our front end by itself, over engines that are none of ours.
func foreignServer(t *testing.T, engines int) *server {
	t.Helper()
	srv := prepare(t, setup{engines: engines})
	address := fmt.Sprintf("tcp://127.0.0.1:%d", srv.ports.handshake)
	srv.frontend = launch(t, "frontend", nil, append(engineCommand(), "frontend", "--handshake-address", address,
		"--engine-count", strconv.Itoa(engines), "--port", strconv.Itoa(srv.ports.http), "--model", modelName)...)
	for rank := range engines {
		launch(t, fmt.Sprintf("foreign engine %d", rank), nil, sdkPython(), filepath.Join("testdata", "foreign_engine.py"),
			"--handshake", address, "--rank", strconv.Itoa(rank))
	}
	proctest.Eventually(t, startupLimit, func() error { return srv.http.healthy("/ready") })
	return srv
}

// sdkPython is the interpreter of the OpenAI SDK.
func sdkPython() string { return filepath.Join(environment("sdk"), "bin", "python") }

// environment is a virtual environment that fetch-sdk.sh made.
func environment(name string) string {
	folder := os.Getenv("VLLM_VCR_CACHE")
	if folder == "" {
		folder = filepath.Join("..", ".cache")
	}
	path, err := filepath.Abs(filepath.Join(folder, name))
	if err != nil {
		panic(err) // no working directory
	}
	return path
}
