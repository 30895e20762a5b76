package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"
)

// errHelp ends a run that only printed its usage.
var errHelp = errors.New("help was asked for")

// maxDuration keeps a slip of the pen from running for days.
const (
	maxDuration = 10 * time.Minute
	maxRounds   = 100
)

// options are the command line, checked.
type options struct {
	scenarios []scenario
	targets   []target
	servers   []server
	duration  time.Duration // measured of each engine in each scenario, all rounds together
	rounds    int
	terminal  bool // somebody looks at stderr
	strict    bool
	json      string // file; "" = none
	plot      bool
	plotDir   string
}

// defaultCommand is the engine that is measured where no other is given.
var defaultCommand = []string{"bin/vllm-vcr", "play", "--handshake-address", "{handshake}", "{flags}"}

func parseOptions(args []string, out io.Writer) (*options, error) {
	o := &options{servers: defaultServers()}
	var peers []target
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.SetOutput(out)
	pattern := set.String("run", "", "scenarios to run, a `regexp`: "+scenarioNames()+"; without it all but growth and waiting")
	name := set.String("name", "engine", "what the table calls the engine")
	set.DurationVar(&o.duration, "duration", 5*time.Second, "time measured of each engine in each scenario, all rounds together")
	set.IntVar(&o.rounds, "rounds", 5, "rounds of each scenario, in which the engines take turns; the tables show the medians, and least and most")
	set.BoolVar(&o.strict, "strict", false, "exit with 1 if a figure misses its bar")
	set.StringVar(&o.json, "json", "", "write all figures to this `file`")
	set.BoolVar(&o.plot, "plot", false, "draw how late tokens were, and what growth costs, where it was measured")
	set.StringVar(&o.plotDir, "plot-dir", "bench/out", "`folder` of the drawings")
	set.Func("peer", "another engine to measure in the same run, `NAME=COMMAND`, split at spaces; repeatable", func(s string) error {
		p, err := parsePeer(s)
		peers = append(peers, p)
		return err
	})
	set.Func("http", "another server for the http scenarios, `NAME=URL` or NAME=COMMAND with {port}; repeatable", func(s string) error {
		v, err := parseServer(s)
		o.servers = append(o.servers, v)
		return err
	})
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil, errHelp
	case err != nil:
		return nil, err
	}
	command := set.Args()
	if len(command) == 0 {
		command = defaultCommand
	}
	stderr, err := os.Stderr.Stat()
	o.terminal = err == nil && stderr.Mode()&os.ModeCharDevice != 0
	o.targets = append([]target{{name: *name, command: command}}, peers...)
	return o, o.check(*pattern)
}

func parsePeer(s string) (target, error) {
	name, command, found := strings.Cut(s, "=")
	argv := strings.Fields(command)
	if !found || name == "" || len(argv) == 0 {
		return target{}, fmt.Errorf("%q: want NAME=COMMAND", s)
	}
	return target{name: name, command: argv}, nil
}

// choose picks the scenarios.
func (o *options) choose(pattern string) error {
	if pattern == "" {
		o.scenarios = matching(nil)
		return nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	if o.scenarios = matching(re); len(o.scenarios) == 0 {
		return fmt.Errorf("%q matches none of %s", pattern, scenarioNames())
	}
	return nil
}

// check picks the scenarios and joins all faults.
func (o *options) check(pattern string) error {
	var errs []error
	if err := o.choose(pattern); err != nil {
		errs = append(errs, fmt.Errorf("run: %w", err))
	}
	if o.rounds < 1 || o.rounds > maxRounds {
		errs = append(errs, fmt.Errorf("rounds: %d, want 1 to %d", o.rounds, maxRounds))
	}
	if o.duration <= 0 || o.duration > maxDuration {
		errs = append(errs, fmt.Errorf("duration: %v, want more than 0 and at most %v", o.duration, maxDuration))
	}
	names := map[string]bool{}
	for _, v := range o.servers {
		if names[v.name] {
			errs = append(errs, fmt.Errorf("http: the name %q is taken", v.name))
		}
		names[v.name] = true
	}
	clear(names)
	for _, t := range o.targets {
		if names[t.name] {
			errs = append(errs, fmt.Errorf("peer: the name %q is taken", t.name))
		}
		names[t.name] = true
		if !t.mentions("{handshake}") {
			errs = append(errs, fmt.Errorf("%s: no {handshake} in the command %q", t.name, strings.Join(t.command, " ")))
		}
	}
	return errors.Join(errs...)
}
