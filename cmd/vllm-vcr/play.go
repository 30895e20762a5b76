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
	opts := bind(cmd)
	cmd.RunE = func(*cobra.Command, []string) error { return play(opts) }
	return cmd
}

// play judges everything that can be judged before anything starts, and then runs the actors.
func play(opts *options) error {
	cfg, err := opts.config()
	filter, filterErr := logs.ParseFilter(logFilter())
	if filterErr != nil {
		filterErr = usageError{fmt.Errorf("RUST_LOG: %w", filterErr)}
	}
	if err := errors.Join(err, filterErr); err != nil {
		return err
	}
	if err := checkTrace(cfg); err != nil {
		return err
	}
	token, err := readToken(cfg.ControlTokenFile)
	if err != nil {
		return err
	}
	listener, err := listen(cfg.ControlAddress)
	if err != nil {
		return err
	}
	format := logs.ChooseFormat(cfg.LogFormat, term.IsTerminal(int(os.Stderr.Fd())), noColor())
	root := logs.New(os.Stderr, format, filter)
	err = runFleet(cfg, root, format, listener, token)
	_ = root.Close() // where nobody reads the log, its last lines are nobody's loss
	return err
}

func runFleet(cfg config.Config, root *logs.Root, format logs.Format, listener net.Listener, token string) error {
	signals := make(chan os.Signal, 2) // for the life of the process, so that a second signal is ours too
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	signal.Ignore(syscall.SIGPIPE) // the end of who reads the log is not ours
	fleet, err := supervisor.New(cfg, supervisor.Options{Signals: signals, Log: root, LogFormat: format})
	if err != nil {
		return err
	}
	root.Target(logs.Process).Info().Str("version", buildVersion()).Interface("opt", cfg).Msg("starting")
	var g run.Group
	g.Add(fleet.Run, fleet.Stop)
	ctx, cancel := context.WithCancel(context.Background())
	g.Add(func() error {
		sayWaiting(ctx, fleet.Health, cfg, root.Target(logs.Process))
		return nil
	}, func(error) { cancel() })
	if listener != nil {
		api := control.NewServer(fleet, fleet, control.Options{
			Timeout: time.Duration(cfg.ControlTimeout) * time.Second,
			Token:   token, Bound: listener.Addr().String(), Log: root.Target(logs.Control),
		})
		g.Add(func() error { return api.Serve(listener) }, func(error) { api.Stop() })
	}
	return g.Run()
}

// checkTrace reads a latency trace as the workers will, so that a bad one is told before a frontend waits for engines.
func checkTrace(cfg config.Config) error {
	if cfg.LatencyTrace == "" {
		return nil
	}
	_, err := latency.Load(cfg.LatencyTrace, cfg.ExpectConfigHash)
	return err
}

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
	return token, nil
}

// network keeps an IPv4 address from standing for IPv6 as well, as 0.0.0.0 would.
func network(address string) string {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip.To4() != nil {
		return "tcp4"
	}
	return "tcp"
}

// listen opens the control API's socket before anything starts, so that a taken port ends the program at once.
func listen(address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	l, err := net.Listen(network(address), address)
	if err != nil {
		return nil, fmt.Errorf("--control-address %s: %w", address, err)
	}
	return l, nil
}
