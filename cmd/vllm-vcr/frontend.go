package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/oklog/run"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"vllm-vcr/config"
	"vllm-vcr/frontend"
	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/frontend/metrics"
	"vllm-vcr/frontend/tokenizer"
	"vllm-vcr/ipc"
	"vllm-vcr/logs"
	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/supervisor"
)

func newFrontend() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "frontend",
		Short: "Run our own OpenAI-compatible front end for engines that join it",
		Long: `Run an OpenAI-compatible front end that waits for engines at --handshake-address, as vLLM's own does. It serves any engine
core that joins: those of vllm-vcr play, on this host or others, or foreign ones.`,
		Example: `  vllm-vcr frontend --engine-count 2 --port 8000
  vllm-vcr play --engine-count 2 --token-source text --vocab-size ` + strconv.Itoa(int(tokenizer.Ordinary)),
		Args: noArguments,
	}
	opts := bind(cmd, config.Frontend, config.Default())
	cmd.RunE = func(*cobra.Command, []string) error { return runFrontend(opts) }
	return cmd
}

func runFrontend(opts *options) error {
	cfg, filter, err := settle(opts)
	if err != nil {
		return err
	}
	format := logs.ChooseFormat(cfg.LogFormat, term.IsTerminal(int(os.Stderr.Fd())), noColor())
	root := logs.New(os.Stderr, format, filter)
	defer root.Close()
	f, err := openFrontEnd(cfg, root)
	if err != nil {
		return err
	}
	signals := signalled()
	var g run.Group
	g.Add(f.run, func(error) { f.server.Stop(0) })
	ctx, cancel := context.WithCancel(context.Background())
	g.Add(func() error { return f.obey(ctx, signals, cfg) }, func(error) { cancel() })
	return g.Run()
}

// frontEnd is the parts of a front end, wired.
type frontEnd struct {
	server     *frontend.Server
	dispatcher *dispatch.Dispatcher
	listener   net.Listener
	log        *logs.Logger
}

// openFrontEnd opens the sockets of the front end that cfg describes.
func openFrontEnd(cfg config.Config, root *logs.Root) (*frontEnd, error) {
	version, err := enginecore.ParseVersion(cfg.VLLMVersion)
	if err != nil {
		return nil, err
	}
	tokens, err := tokenizer.New()
	if err != nil {
		return nil, err
	}
	pair, err := frontEndPair(cfg)
	if err != nil {
		return nil, err
	}
	names := cfg.ServedModelName
	if len(names) == 0 {
		names = []string{cfg.Model}
	}
	counted := metrics.New(metrics.Options{Model: names[0], Engines: int(cfg.EngineCount), MaxModelLen: cfg.MaxModelLen})
	f := &frontEnd{log: root.Target(logs.Process)}
	f.dispatcher, err = dispatch.New(dispatch.Options{
		Handshake: cfg.HandshakeAddress, Engines: int(cfg.EngineCount), Version: version, KeepHandshake: true, Observer: counted,
		Changed: f.changed, Refused: func(err error) { f.log.Warn().Err(err).Msg("engine refused") },
	})
	if err != nil {
		return nil, err
	}
	f.server, err = frontend.New(frontend.Over(f.dispatcher), tokens, frontend.Options{
		Models: names, Root: cfg.Model, Version: version, APIKeys: cfg.APIKey, MaxModelLen: int(min(cfg.MaxModelLen, 1<<31-1)),
		DefaultMaxTokens: int(cfg.MaxNewTokens), MaxLogprobs: int(cfg.MaxLogprobs), MaxBody: int(cfg.MaxBodySize), RequestIDHeaders: cfg.EnableRequestIDHeaders,
		Metrics: counted, Log: f.log,
	})
	if err != nil {
		f.closeEngines()
		return nil, err
	}
	if f.listener, err = listenTCP(net.JoinHostPort(cfg.Host, strconv.FormatUint(cfg.Port, 10))); err != nil {
		f.closeEngines()
		return nil, fmt.Errorf("OpenAI API at %s port %d: %w", cfg.Host, cfg.Port, err)
	}
	if pair != nil {
		f.listener = pair.Over(f.listener, f.log)
	}
	return f, nil
}

func (f *frontEnd) changed(rank int, err error) {
	if err != nil {
		f.log.Warn().Int("rank", rank).Err(err).Msg("engine lost")
		return
	}
	f.log.Info().Int("rank", rank).Msg("engine joined")
}

// run serves until the server is stopped.
func (f *frontEnd) run() error {
	defer f.closeEngines()
	return f.server.Serve(f.listener)
}

// closeLinger is how long the last aborts may take to reach the engines.
const closeLinger = time.Second

func (f *frontEnd) closeEngines() {
	ctx, cancel := context.WithTimeout(context.Background(), closeLinger)
	defer cancel()
	_ = f.dispatcher.Close(ctx) // engines notice the end of their connections
}

// obey drains at the first signal and gives up at the second.
func (f *frontEnd) obey(ctx context.Context, signals <-chan os.Signal, cfg config.Config) error {
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return nil
		case s := <-signals:
			if !first {
				return &supervisor.SignalError{Signal: s}
			}
			f.log.Info().Str("signal", s.String()).Msg("signal received")
			f.server.Stop(time.Duration(cfg.ShutdownTimeout) * time.Second)
		}
	}
}

// frontEndProcess is the sub-command by which serve starts its front end.
const frontEndProcess = "front-end"

func newFrontEndProcess() *cobra.Command {
	return &cobra.Command{
		Use:    frontEndProcess,
		Short:  "Run the front end of serve for a supervisor",
		Hidden: true,
		Args:   noArguments,
		RunE:   func(*cobra.Command, []string) error { return runFrontEndProcess() },
	}
}

// runFrontEndProcess serves until the supervisor's socket ends.
func runFrontEndProcess() error {
	nameProcess("vllm-vcr-front")
	conn, err := inheritedSocket()
	if err != nil {
		return usageError{fmt.Errorf("this command is for a supervisor to start, use serve: %w", err)}
	}
	defer conn.Close()
	signalled() // a terminal's signals are the supervisor's to judge
	start, root, err := begin(conn)
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := openFrontEnd(start.Config, root)
	if err != nil {
		return err
	}
	frame, err := ipc.Append(nil, ipc.KindState, 0, ipc.State{
		State: ipc.StateListening, Handshake: f.dispatcher.Handshake(), HTTP: f.listener.Addr().String(),
	})
	if err == nil {
		_, err = conn.Write(frame)
	}
	if err != nil {
		return errors.Join(err, f.listener.Close())
	}
	var g run.Group
	g.Add(f.run, func(error) { f.server.Stop(0) })
	g.Add(func() error { return f.follow(conn, root) }, func(error) { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return g.Run()
}

// begin reads the supervisor's first frame and starts the log.
func begin(conn net.Conn) (ipc.Start, *logs.Root, error) {
	start, err := ipc.ReadStart(conn)
	if err != nil {
		return start, nil, err
	}
	filter, err := logs.ParseFilter(start.LogFilter)
	if err != nil {
		return start, nil, err
	}
	return start, logs.New(os.Stderr, logs.Format(start.LogFormat), filter), nil
}

// follow does what the supervisor says, until its socket ends.
func (f *frontEnd) follow(conn net.Conn, root *logs.Root) error {
	var buf []byte
	for {
		frame, b, err := ipc.ReadFrame(conn, buf)
		if err != nil {
			return nil
		}
		buf = b
		var call ipc.Call
		if frame.Kind != ipc.KindCall || frame.Decode(&call) != nil {
			f.log.Warn().Uint8("kind", uint8(frame.Kind)).Msg("frame dropped")
			continue
		}
		switch call.Op {
		case ipc.OpDrain:
			f.server.Stop(time.Duration(call.Timeout)*time.Second + closeLinger)
		case ipc.OpLog:
			if filter, err := logs.ParseFilter(call.Filter); err == nil {
				root.SetFilter(filter)
			}
		}
	}
}
