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
	of     config.Commands
	cfg    config.Config
	flags  map[string]*flagValue
	faults []error
}

// flagValue is an option as a flag. It never fails while flags are parsed: what is wrong is noted, and leaves the default, so
// that it is told once.
type flagValue struct {
	config.Value
	option   config.Option
	options  *options
	fallback string // the default
	given    bool
}

// Set takes the text of the flag. Of several the last counts, but the words of a list add up.
func (f *flagValue) Set(text string) error {
	set := f.Value.Set
	if list, ok := f.Value.(interface{ Append(string) error }); ok && f.given {
		set = list.Append
	}
	f.given = true
	if err := f.try(set, text); err != nil {
		f.options.faults = append(f.options.faults, err)
	}
	return nil
}

func (f *flagValue) try(set func(string) error, text string) error {
	err := set(text)
	if err == nil {
		err = f.Check()
	}
	if err == nil {
		return nil
	}
	_ = f.Value.Set(f.fallback) // it was the value before
	return f.option.Fault(text, err)
}

// IsBoolFlag lets a switch stand without a value.
func (f *flagValue) IsBoolFlag() bool { return f.Type() == "bool" }

// bind adds the flags that one command has in the table to cmd, grouped in its help. Their defaults are those of cfg.
func bind(cmd *cobra.Command, of config.Commands, cfg config.Config) *options {
	o := &options{of: of, cfg: cfg, flags: map[string]*flagValue{}}
	groups := map[string]*pflag.FlagSet{}
	var order []string
	for _, option := range config.OptionsFor(of) {
		flag := o.add(cmd, option)
		group := groups[option.Group]
		if group == nil {
			group = pflag.NewFlagSet(option.Group, pflag.ContinueOnError)
			group.SortFlags = false
			groups[option.Group] = group
			order = append(order, option.Group)
		}
		group.AddFlag(flag)
	}
	cmd.SetFlagErrorFunc(o.unreadable)
	cmd.SetUsageFunc(func(cmd *cobra.Command) error { return printUsage(cmd, order, groups) })
	return o
}

// add gives cmd the flag of one option.
func (o *options) add(cmd *cobra.Command, option config.Option) *pflag.Flag {
	value := option.Value(&o.cfg)
	v := &flagValue{Value: value, option: option, options: o, fallback: value.String()}
	o.flags[option.Flag] = v
	flag := cmd.Flags().VarPF(v, option.Flag, "", option.Help+" [$"+option.Env+"]")
	if v.IsBoolFlag() {
		flag.NoOptDefVal = "true"
	}
	if words := strings.Split(v.Type(), "|"); len(words) > 1 {
		_ = cmd.RegisterFlagCompletionFunc(option.Flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	}
	return flag
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

// config returns the configuration, or every fault of flags and environment at once, as a usageError.
func (o *options) config() (config.Config, error) {
	faults := o.faults
	for _, option := range config.OptionsFor(o.of) {
		v := o.flags[option.Flag]
		if name, text, ok := environment(option); ok && !v.given {
			if err := v.try(v.Value.Set, text); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	if err := errors.Join(append(faults, o.cfg.Validate())...); err != nil {
		return o.cfg, usageError{err}
	}
	return o.cfg, nil
}

// unreadable is the error for a command line that cannot be read to its end. It has the faults found so far with it.
func (o *options) unreadable(_ *cobra.Command, err error) error {
	_, more := o.config()
	return usageError{errors.Join(err, more)}
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
	case "model", "port":
		name = map[string]string{"model": "MODEL", "port": "VLLM_PORT"}[o.Flag]
		text, ok = os.LookupEnv(name)
		return name, text, ok && os.Getenv("MOCK_CONTAINER") == "1"
	case "engine-id":
		text, ok = os.LookupEnv("POD_NAME")
		return "POD_NAME", text, ok && os.Getenv("MOCK_CONTAINER") == "1"
	}
	return "", "", false
}

// given says that a flag or a variable set this option.
func (o *options) given(flag string) bool {
	v := o.flags[flag]
	_, _, ok := environment(v.option)
	return v.given || ok
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
