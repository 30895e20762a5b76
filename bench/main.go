package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// errMissed ends a strict run in which a figure missed its bar.
var errMissed = errors.New("a figure missed its bar")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// command is what this process is for: bench itself, or a part that bench starts in a process of its own.
func command(ctx context.Context, args []string) error {
	switch {
	case len(args) > 0 && args[0] == limitArg:
		return runLimit(ctx, args[1:])
	case len(args) > 0 && args[0] == busyArg:
		return runBusy()
	case len(args) > 0 && args[0] == idleArg:
		return runIdle()
	case len(args) > 0 && args[0] == probeArg:
		return runProbe(ctx, args[1:])
	}
	return run(ctx, args, os.Stdout)
}

// run does what the arguments say and prints to out. A scenario that fails doesn't keep the others from running.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parseOptions(args, out)
	if errors.Is(err, errHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	rep := report{Machine: calibrate()}
	fmt.Fprintln(out, rep.Machine)
	var errs []error
	for _, s := range o.scenarios {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		m := o.measure(ctx, s)
		rep.Scenarios = append(rep.Scenarios, m)
		printMeasured(out, m)
		errs = append(errs, m.errors()...)
	}
	rep.Machine.finish()
	fmt.Fprintf(out, "\n%s\n", rep.Machine.drift())
	errs = append(errs, o.save(out, &rep)...)
	if o.strict && rep.missed() {
		errs = append(errs, errMissed)
	}
	return errors.Join(errs...)
}

// measure runs one scenario with every engine or server, one after the other, in as many rounds as were asked for. One that
// fails is not tried again.
func (o *options) measure(ctx context.Context, s scenario) measured {
	m := measured{Name: s.name, About: s.about, LoadAverage: loadAverage()}
	others := watchOthers()
	trials := o.trials(s)
	m.Runs = make([]engineRun, len(trials))
	for round := range o.roundsOf(s) {
		for i, t := range trials {
			r := &m.Runs[i]
			r.Engine = t.name
			if r.err != nil {
				continue
			}
			o.progress(s, t, round)
			figures, err := t.run(ctx)
			if err != nil {
				r.err = fmt.Errorf("%s: %s: %w", s.name, t.name, err)
				r.Error = err.Error()
			}
			r.Figures.join(figures)
		}
	}
	o.progressDone()
	m.Others = others.share()
	m.rival(s.rival)
	return m
}

// progress says on stderr what is being measured, where somebody looks.
func (o *options) progress(s scenario, t trial, round int) {
	if o.terminal {
		fmt.Fprintf(os.Stderr, "\r\x1b[K%s: %s, round %d of %d", s.name, t.name, round+1, o.roundsOf(s))
	}
}

func (o *options) progressDone() {
	if o.terminal {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}

// save writes the files that were asked for.
func (o *options) save(out io.Writer, rep *report) []error {
	var errs []error
	if o.json != "" {
		errs = append(errs, rep.writeJSON(o.json))
	}
	if o.plot {
		path, err := rep.writePlot(o.plotDir)
		paths, growthErr := rep.writeCharts(o.plotDir)
		for _, path := range append(paths, path) {
			if path != "" {
				fmt.Fprintln(out, "plot:", path)
			}
		}
		errs = append(errs, err, growthErr)
	}
	return errs
}
