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
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
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

// measure runs one scenario with every engine or server, one after the other.
func (o *options) measure(ctx context.Context, s scenario) measured {
	m := measured{Name: s.name, About: s.about}
	for _, t := range o.trials(s) {
		load := loadAverage()
		figures, err := t.run(ctx)
		r := engineRun{Engine: t.name, LoadAverage: load, Figures: figures}
		if err != nil {
			r.err = fmt.Errorf("%s: %s: %w", s.name, t.name, err)
			r.Error = err.Error()
		}
		m.Runs = append(m.Runs, r)
	}
	m.rival(s.rival)
	return m
}

// save writes the files that were asked for.
func (o *options) save(out io.Writer, rep *report) []error {
	var errs []error
	if o.json != "" {
		errs = append(errs, rep.writeJSON(o.json))
	}
	if o.plot {
		path, err := rep.writePlot(o.plotDir)
		if path != "" {
			fmt.Fprintln(out, "plot:", path)
		}
		errs = append(errs, err)
	}
	return errs
}
