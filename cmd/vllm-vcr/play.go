package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/oklog/run"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"vllm-vcr/config"
	"vllm-vcr/logs"
	"vllm-vcr/supervisor"
	"vllm-vcr/supervisor/control"
	"vllm-vcr/worker/latency"
)

func newPlay() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "play",
		Short: "Run engines under a vLLM frontend, and an HTTP API to steer them",
		Long: `Run simulated engines, each in a process of its own. They join the vLLM frontend whose handshake waits at
--handshake-address, and serve what it sends with the timing, limits and failures asked for. With
--control-address they can be changed and counted over HTTP while they run.

Start a frontend that waits for two engines, for instance:

  vllm serve MODEL --data-parallel-size 2 --data-parallel-size-local 0`,
		Example: `  vllm-vcr play --engine-count 2 --control-address 127.0.0.1:8001 --inter-token-latency 20
  curl -s localhost:8001/config
  curl -s -X PATCH localhost:8001/config -H 'content-type: application/json' -d '{"inter_token_latency": 50}'
  curl -s localhost:8001/stats`,
		Args: noArguments,
	}
	opts := bind(cmd, config.Play, config.Default())
	cmd.RunE = func(*cobra.Command, []string) error { return play(opts) }
	return cmd
}

func play(opts *options) error {
	h, err := judge(opts)
	if err != nil {
		return err
	}
	defer h.close()
	return h.runFleet(nil)
}

// house is what every command that runs engines needs before anything starts.
type house struct {
	cfg      config.Config
	root     *logs.Root
	format   logs.Format
	listener net.Listener // of the control API, nil = none
	token    string
	signals  chan os.Signal // for the life of the process, so that a second signal is ours too
}

// judge judges everything that can be judged before anything starts.
func judge(opts *options) (*house, error) {
	cfg, filter, err := settle(opts)
	if err != nil {
		return nil, err
	}
	if err := checkTrace(cfg); err != nil {
		return nil, err
	}
	token, err := readToken(cfg.ControlTokenFile)
	if err != nil {
		return nil, err
	}
	if _, err := frontEndPair(cfg); err != nil {
		return nil, err
	}
	pair, err := keyPair("--control-ssl-certfile", cfg.ControlSSLCertFile, cfg.ControlSSLKeyFile)
	if err != nil {
		return nil, err
	}
	listener, err := listenControl(cfg.ControlAddress)
	if err != nil {
		return nil, err
	}
	format := logs.ChooseFormat(cfg.LogFormat, term.IsTerminal(int(os.Stderr.Fd())), noColor())
	root := logs.New(os.Stderr, format, filter)
	if listener != nil && pair != nil {
		listener = pair.Over(listener, root.Target(logs.Control))
	}
	return &house{cfg, root, format, listener, token, signalled()}, nil
}

// settle returns what flags and environment say, or all that is wrong with them.
func settle(opts *options) (config.Config, logs.Filter, error) {
	cfg, err := opts.config()
	filter, filterErr := logs.ParseFilter(logFilter())
	if filterErr != nil {
		filterErr = usageError{fmt.Errorf("RUST_LOG: %w", filterErr)}
	}
	return cfg, filter, errors.Join(err, filterErr)
}

// signalled takes the signals that end a process.
func signalled() chan os.Signal {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	signal.Ignore(syscall.SIGPIPE) // the end of who reads the log is not ours
	return signals
}

func (h *house) close() {
	if h.listener != nil {
		_ = h.listener.Close() // the control API has, where it ran
	}
	_ = h.root.Close() // where nobody reads the log, its last lines are nobody's loss
}

// runFleet runs the engines, the control API and, where there is one, the front end beside them.
func (h *house) runFleet(frontEnd *supervisor.Companion) error {
	o := supervisor.Options{Signals: h.signals, Log: h.root, LogFormat: h.format}
	if frontEnd != nil {
		o.Draining = frontEnd.Drain
	}
	cfg := h.cfg
	fleet, err := supervisor.New(cfg, o)
	if err != nil {
		if frontEnd != nil {
			frontEnd.Stop(nil)
			err = errors.Join(err, frontEnd.Run())
		}
		return err
	}
	shown := cfg.Clone()
	shown.APIKey = nil // no secret goes into a log
	h.root.Target(logs.Process).Info().Str("version", buildVersion()).Interface("opt", shown).Msg("starting")
	var g run.Group
	g.Add(fleet.Run, fleet.Stop)
	if frontEnd != nil {
		g.Add(frontEnd.Run, frontEnd.Stop)
	}
	ctx, cancel := context.WithCancel(context.Background())
	g.Add(func() error {
		sayWaiting(ctx, fleet.Health, cfg, h.root.Target(logs.Process))
		return nil
	}, func(error) { cancel() })
	if h.listener != nil {
		o := control.Options{
			Timeout: time.Duration(cfg.ControlTimeout) * time.Second, ShutdownTimeout: cfg.ShutdownTimeout,
			Token: h.token, Bound: h.listener.Addr().String(), Log: h.root.Target(logs.Control),
		}
		if frontEnd != nil {
			o.FrontEndRestarts = frontEnd.Restarts
		}
		api := control.NewServer(fleet, filters{fleet, frontEnd}, o)
		g.Add(func() error { return api.Serve(h.listener) }, func(error) { api.Stop() })
	}
	return g.Run()
}

// filters changes the log filter of all processes there are.
type filters struct {
	*supervisor.Fleet
	frontEnd *supervisor.Companion // nil = there is none
}

// SetFilter implements control.LogFilter.
func (f filters) SetFilter(ctx context.Context, text string) (string, error) {
	filter, err := f.Fleet.SetFilter(ctx, text)
	if err == nil && f.frontEnd != nil {
		f.frontEnd.SetFilter(filter)
	}
	return filter, err
}

// checkTrace reads a latency trace as the workers will, so that a bad one is told before a frontend waits for engines.
func checkTrace(cfg config.Config) error {
	if cfg.LatencyTrace == "" {
		return nil
	}
	_, err := latency.Load(cfg.LatencyTrace, cfg.ExpectConfigHash)
	return err
}

// maxToken is the longest bearer token in bytes: with other headers it has to fit into what a call may bring.
const maxToken = 4096

func readToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--control-token-file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("--control-token-file: %s is empty, want a token", path)
	}
	unsendable := func(c rune) bool { return c <= ' ' || c > '~' }
	if at := strings.IndexFunc(token, unsendable); at >= 0 || len(token) > maxToken {
		return "", fmt.Errorf("--control-token-file: %s holds %d bytes, want at most %d, one line of ASCII without blanks", path, len(token), maxToken)
	}
	return token, nil
}
