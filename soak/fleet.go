package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// patience is how long anything may take to be as it should be again.
const patience = 60 * time.Second

// fleet is a supervisor and its engines.
type fleet struct {
	name    string
	engines int
	process *process
	control *control
	killed  map[int][]time.Time // by index
}

// baseSettings are those of the start, and those that everything comes back to.
const baseSettings = `{"time_to_first_token": 5, "inter_token_latency": 2, "max_num_seqs": 128, "failure_injection_rate": 0, "time_factor_under_load": 1}`

// startFleet starts engines that look for a frontend at handshake.
func startFleet(name, binary, handshake string, engines int, args ...string) (*fleet, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p, err := launch(name, append([]string{binary, "play", "--engine-count", strconv.Itoa(engines), "--handshake-address", handshake,
		"--control-address", address, "--restart", "on-failure", "--time-to-first-token", "5", "--inter-token-latency", "2",
		"--shutdown-timeout", "5"}, args...)...)
	if err != nil {
		return nil, err
	}
	return &fleet{name: name, engines: engines, process: p, control: newControl(address), killed: map[int][]time.Time{}}, nil
}

// ready waits until every engine is.
func (f *fleet) ready(ctx context.Context) error {
	return eventually(ctx, f.name+": every engine is ready", func() error {
		if err := f.process.ended(); err != nil {
			return err
		}
		return f.control.ask(ctx, http.MethodGet, "/health/ready", "", nil)
	})
}

// idle waits until no engine has a request.
func (f *fleet) idle(ctx context.Context) error {
	return eventually(ctx, f.name+": no engine has a request", func() error {
		var s stats
		err := f.control.ask(ctx, http.MethodGet, "/stats", "", &s)
		if err == nil && s.Running+s.Waiting > 0 {
			return fmt.Errorf("%d running, %d waiting", s.Running, s.Waiting)
		}
		return err
	})
}

// eventually asks until there is no error, with patience.
func eventually(ctx context.Context, what string, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return nil
		}
		if wait(ctx, 50*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("not so after %v: %s: %w", patience, what, err)
		}
	}
}

// freeAddress is a HOST:PORT that nobody listened on a moment ago, below the range that the kernel hands out by itself.
func freeAddress() (string, error) {
	var err error
	for range 100 {
		var ln net.Listener
		if ln, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000))); err == nil {
			return ln.Addr().String(), ln.Close()
		}
	}
	return "", fmt.Errorf("find a free port between 20000 and 32000: %w", err)
}

// served is what the model is called at every front end.
const served = "soak"

// frontEnd is an OpenAI server in a process that may be killed and comes back at the same addresses.
type frontEnd struct {
	name      string
	argv      []string
	handshake string // where it waits for engines, tcp://HOST:PORT
	address   string // of its HTTP API, HOST:PORT
	process   *process
}

// ownFrontEnd is vllm-vcr's.
func ownFrontEnd(binary, handshake, address string, engines int) *frontEnd {
	return &frontEnd{name: "front end", handshake: "tcp://" + handshake, address: address, argv: []string{
		binary, "frontend", "--engine-count", strconv.Itoa(engines), "--handshake-address", "tcp://" + handshake, "--port", port(address), "--model", served,
	}}
}

// vllmFrontEnd is vLLM's Rust server.
func vllmFrontEnd(binary, handshake, address string, engines int) *frontEnd {
	return &frontEnd{name: "vllm-rs", handshake: "tcp://" + handshake, address: address, argv: []string{
		"env", "HF_HUB_OFFLINE=1", "NO_COLOR=1", binary, "serve", "conformance/testdata/model-dense", "--served-model-name", served,
		"--host", "127.0.0.1", "--port", port(address), "--data-parallel-size", strconv.Itoa(engines), "--data-parallel-size-local", "0",
		"--data-parallel-address", "127.0.0.1", "--data-parallel-rpc-port", port(handshake),
	}}
}

// port is what follows the last colon of an address.
func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

func (e *frontEnd) start() (err error) {
	e.process, err = launch(e.name, e.argv...)
	return err
}

// comeBack kills it, and starts it again after a while.
func (e *frontEnd) comeBack(ctx context.Context, away time.Duration) error {
	e.process.kill()
	wait(ctx, away)
	if err := e.start(); err != nil {
		return err
	}
	return e.ready(ctx)
}

// ready waits until it serves.
func (e *frontEnd) ready(ctx context.Context) error {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return eventually(ctx, e.name+" is ready", func() error {
		if err := e.process.ended(); err != nil {
			return err
		}
		a, err := client.Get("http://" + e.address + "/health")
		if err != nil {
			return err
		}
		_ = a.Body.Close() // the status is all
		if a.StatusCode != http.StatusOK {
			return fmt.Errorf("GET /health: %s", a.Status)
		}
		return nil
	})
}
