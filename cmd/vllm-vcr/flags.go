package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vllm-vcr/config"
)

// options binds the table of options to a command, and collects every fault of flags and environment before it gives up.
type options struct {
	cfg    config.Config
	flags  map[string]*flagValue
	faults []error
}

// flagValue is an option as a flag. It never fails while flags are parsed: what is wrong is noted.
type flagValue struct {
	config.Value
	option  config.Option
	options *options
	given   bool
	faulty  bool
}

func (f *flagValue) Set(text string) error {
	if lists, ok := f.Value.(interface{ Append(string) error }); ok && f.given {
		return f.note(text, lists.Append(text))
	}
	f.given = true
	return f.note(text, f.Value.Set(text))
}

func (f *flagValue) note(text string, err error) error {
	if err == nil {
		err = f.Check()
	}
	f.faulty = err != nil
	if f.faulty {
		f.options.faults = append(f.options.faults, f.option.Fault(text, err))
	}
	return nil
}

// IsBoolFlag lets a switch stand without a value.
func (f *flagValue) IsBoolFlag() bool { return f.Type() == "bool" }

// bind adds the flags of the table to cmd, grouped in its help.
func bind(cmd *cobra.Command) *options {
	o := &options{cfg: config.Default(), flags: map[string]*flagValue{}}
	groups := map[string]*pflag.FlagSet{}
	var order []string
	for _, option := range config.Options() {
		v := &flagValue{Value: option.Value(&o.cfg), option: option, options: o}
		o.flags[option.Flag] = v
		flag := cmd.Flags().VarPF(v, option.Flag, "", option.Help+" [$"+option.Env+"]")
		if v.IsBoolFlag() {
			flag.NoOptDefVal = "true"
		}
		group := groups[option.Group]
		if group == nil {
			group = pflag.NewFlagSet(option.Group, pflag.ContinueOnError)
			group.SortFlags = false
			groups[option.Group] = group
			order = append(order, option.Group)
		}
		group.AddFlag(flag)
	}
	cmd.SetUsageFunc(func(cmd *cobra.Command) error { return printUsage(cmd, order, groups) })
	return o
}

func printUsage(cmd *cobra.Command, order []string, groups map[string]*pflag.FlagSet) error {
	out := cmd.OutOrStderr()
	fmt.Fprintf(out, "Usage:\n  %s [flags]\n", cmd.CommandPath())
	if cmd.Example != "" {
		fmt.Fprintf(out, "\nExamples:\n%s\n", cmd.Example)
	}
	for _, group := range order {
		fmt.Fprintf(out, "\n%s:\n%s", group, groups[group].FlagUsagesWrapped(120))
	}
	_, err := fmt.Fprint(out, "\nA flag wins over its environment variable, shown in brackets.\n")
	return err
}

// config returns the configuration, or every fault of flags and environment at once.
func (o *options) config() (config.Config, error) {
	for _, option := range config.Options() {
		if v := o.flags[option.Flag]; !v.given {
			o.fromEnvironment(v)
		}
	}
	if len(o.faults) > 0 {
		return o.cfg, usageError{errors.Join(o.faults...)}
	}
	if err := o.cfg.Validate(); err != nil {
		return o.cfg, usageError{err}
	}
	return o.cfg, nil
}

// fromEnvironment sets an option whose flag was not given.
func (o *options) fromEnvironment(v *flagValue) {
	name, text, ok := environment(v.option)
	if !ok {
		return
	}
	err := v.Value.Set(text)
	if err == nil {
		err = v.Check()
	}
	if err != nil {
		o.faults = append(o.faults, fmt.Errorf("%s: %w", name, v.option.Fault(text, err)))
	}
}

// environment finds the variable that speaks for an option: its own, or one that the container's environment has in its
// place.
func environment(o config.Option) (name, text string, ok bool) {
	if text, ok = os.LookupEnv(o.Env); ok {
		return o.Env, text, true
	}
	switch o.Flag {
	case "handshake-address":
		text, ok = os.LookupEnv("MOCK_HANDSHAKE_PORT")
		return "MOCK_HANDSHAKE_PORT", "tcp://127.0.0.1:" + text, ok
	case "control-address":
		text, ok = os.LookupEnv("MOCK_CONTROL_PORT")
		return "MOCK_CONTROL_PORT", "0.0.0.0:" + text, ok
	case "engine-id":
		text, ok = os.LookupEnv("POD_NAME")
		return "POD_NAME", text, ok && os.Getenv("MOCK_CONTAINER") == "1"
	}
	return "", "", false
}

// logFilter is the start filter of the logs.
func logFilter() string {
	if text, ok := os.LookupEnv("RUST_LOG"); ok {
		return text
	}
	return "info"
}

// noColor says that the user wants no colours, whatever the value.
func noColor() bool { return strings.TrimSpace(os.Getenv("NO_COLOR")) != "" }
