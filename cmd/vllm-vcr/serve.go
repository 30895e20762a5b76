package main

import (
	"context"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"vllm-vcr/config"
	"vllm-vcr/frontend/tokenizer"
	"vllm-vcr/supervisor"
)

// frontEndStart is how long the front end may take to open its sockets.
const frontEndStart = 10 * time.Second

func newServe() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run engines behind our own OpenAI-compatible front end",
		Long: `Run simulated engines and, in one more process, an OpenAI-compatible front end that they serve. No vLLM, no model and
no network are needed. Everything that play does to engines it does as well.`,
		Example: `  vllm-vcr serve --engine-count 2 --control-address 127.0.0.1:8001 --inter-token-latency 20
  curl localhost:8000/v1/chat/completions -H 'content-type: application/json' -d '{"messages": [{"role": "user", "content": "Hello"}], "stream": true}'
  curl -s -X PATCH localhost:8001/config -H 'content-type: application/json' -d '{"inter_token_latency": 200}'
  curl -s localhost:8001/stats`,
		Args: noArguments,
	}
	opts := bind(cmd, config.Serve, serveDefaults())
	cmd.RunE = func(*cobra.Command, []string) error { return serve(opts) }
	return cmd
}

// serveDefaults are those of play, with answers that can be read and a context as a model would have it.
func serveDefaults() config.Config {
	cfg := config.Default()
	cfg.MaxModelLen = 32768
	cfg.TokenSource = config.TokensText
	cfg.VocabSize = uint64(tokenizer.Ordinary)
	return cfg
}

// serve starts the front end, which says where engines can join it, and then runs the fleet.
func serve(opts *options) error {
	h, err := judge(opts)
	if err != nil {
		return err
	}
	defer h.close()
	cfg := h.cfg
	if !opts.given("handshake-address") {
		cfg.HandshakeAddress = "tcp://127.0.0.1:0"
	}
	ctx, cancel := context.WithTimeout(context.Background(), frontEndStart)
	defer cancel()
	frontEnd, listening, err := supervisor.StartCompanion(ctx, supervisor.CompanionOptions{
		Config: cfg, Log: h.root, LogFormat: h.format, Command: frontEndCommand,
	})
	if err != nil {
		return err
	}
	h.cfg.HandshakeAddress = listening.Handshake
	return h.runFleet(frontEnd)
}

// frontEndCommand is this very program, even where its file was replaced or removed since.
func frontEndCommand() *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"vllm-vcr", frontEndProcess}
	return cmd
}
