package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	duration time.Duration // of the load with faults, the warm-up included
	gap      time.Duration // between two faults
	seed     uint64
	binary   string
	vllm     string // vLLM's Rust server, "" = none
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.DurationVar(&o.duration, "duration", 10*time.Minute, "how long to soak, at least 30s")
	flags.DurationVar(&o.gap, "gap", 10*time.Second, "time between two faults")
	flags.Uint64Var(&o.seed, "seed", uint64(time.Now().Unix()), "seed of load and faults")
	flags.StringVar(&o.binary, "binary", "bin/vllm-vcr", "program under test")
	flags.StringVar(&o.vllm, "vllm", "", "vLLM's Rust server, for a third fleet; none = two fleets")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.duration < 30*time.Second || o.gap < time.Second {
		return o, fmt.Errorf("duration %v and gap %v, want at least 30s and 1s", o.duration, o.gap)
	}
	return o, nil
}

// run soaks as the arguments say. Its error joins all that was not as it should be.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "soak: seed %d, %v, a fault every %v\n", o.seed, o.duration, o.gap)
	s, err := start(ctx, o, out)
	if err != nil {
		return err
	}
	defer s.kill()
	return s.soak(ctx)
}
