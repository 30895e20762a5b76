//go:build conformance || conformance_python

package conformance

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"vllm-vcr/proctest"
)

// vocabSize makes the engines draw only tokens that are whole, visible text (testdata/make_model.py).
const vocabSize = 300

// setup says what a test wants to run. The zero value is one engine with no flags behind the dense model.
type setup struct {
	version  string   // of the frontend, and so of the protocol
	engines  int      // 0 = 1
	play     []string // more flags of play
	frontend []string // more flags of the frontend
	env      []string // more of the frontend's environment
	model    string   // a folder of testdata; "" = model-dense
}

// server is a real frontend over our engines, with a client for each of the two HTTP ports.
type server struct {
	setup
	frontend *process
	engines  *process
	http     *client // the frontend's OpenAI API
	control  *client // the engines' control API
	ports    struct{ handshake, http, control int }
}

// serve starts what s describes and waits until the frontend answers and every engine is ready.
func serve(t *testing.T, s setup) *server {
	t.Helper()
	srv := prepare(t, s)
	srv.startFrontend(t)
	srv.startEngines(t)
	srv.waitReady(t)
	return srv
}

// prepare chooses the ports and starts nothing.
func prepare(t *testing.T, s setup) *server {
	t.Helper()
	s.engines = max(1, s.engines)
	if s.model == "" {
		s.model = "model-dense"
	}
	srv := &server{setup: s}
	ports := freePorts(t, 3)
	srv.ports.handshake, srv.ports.http, srv.ports.control = ports[0], ports[1], ports[2]
	srv.http = newClient(t, srv.ports.http)
	srv.control = newClient(t, srv.ports.control)
	return srv
}

func (s *server) startFrontend(t *testing.T) {
	t.Helper()
	command, env := frontendCommand(t, s.version)
	argv := append(command, "serve", filepath.Join("testdata", s.model),
		"--data-parallel-size", strconv.Itoa(s.setup.engines), "--data-parallel-size-local", "0",
		"--data-parallel-address", "127.0.0.1", "--data-parallel-rpc-port", strconv.Itoa(s.ports.handshake),
		"--host", "127.0.0.1", "--port", strconv.Itoa(s.ports.http), "--served-model-name", modelName)
	env = append(env, "HF_HUB_OFFLINE=1", "VLLM_SERVER_DEV_MODE=1", "NO_COLOR=1")
	s.frontend = launch(t, "frontend", append(env, s.env...), append(argv, s.setup.frontend...)...)
}

func (s *server) startEngines(t *testing.T) {
	t.Helper()
	argv := append(engineCommand(), "play",
		"--handshake-address", fmt.Sprintf("tcp://127.0.0.1:%d", s.ports.handshake),
		"--control-address", fmt.Sprintf("127.0.0.1:%d", s.ports.control),
		"--engine-count", strconv.Itoa(s.setup.engines),
		"--vllm-version", "v"+s.version, "--vocab-size", strconv.Itoa(vocabSize))
	s.engines = launch(t, "engines", nil, append(argv, s.play...)...)
}

// waitReady polls the health of both ends until requests can be served.
func (s *server) waitReady(t *testing.T) {
	t.Helper()
	proctest.Eventually(t, startupLimit, func() error {
		for _, p := range []*process{s.frontend, s.engines} {
			select {
			case <-p.exited:
				t.Fatalf("%s ended while starting: %v", p.name, p.cmd.ProcessState)
			default:
			}
		}
		if err := s.http.healthy("/health"); err != nil {
			return fmt.Errorf("frontend: %w", err)
		}
		if err := s.control.healthy("/health/ready"); err != nil {
			return fmt.Errorf("engines: %w", err)
		}
		return nil
	})
}

// engineCommand is the program under test: the words of VLLM_VCR_BIN, or the built binary.
func engineCommand() []string {
	if words := strings.Fields(os.Getenv("VLLM_VCR_BIN")); len(words) > 0 {
		return words
	}
	return []string{filepath.Join("..", "bin", "vllm-vcr")}
}

// cacheFolder is where the fetch scripts put what they fetched.
func cacheFolder() string {
	if folder := os.Getenv("VLLM_VCR_CACHE"); folder != "" {
		return filepath.Join(folder, "frontends")
	}
	return filepath.Join("..", ".cache", "frontends")
}

// freePorts returns n ports that were free a moment ago. They lie below the range that the kernel hands out by itself, so
// that no connection made meanwhile takes one of them.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	var ports []int
	for deadline := time.Now().Add(5 * time.Second); len(ports) < n; {
		if time.Now().After(deadline) {
			t.Fatal("no free port between 20000 and 32000")
		}
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000)))
		if err != nil {
			continue
		}
		defer func() { _ = listener.Close() }() // held until all n are chosen, so that they differ
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports
}
