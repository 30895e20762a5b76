// Command vllm-vcr stands in for vLLM's engine core. This package parses options, wires the other packages together and
// chooses the exit code; it holds no behaviour of its own.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vllm-vcr/supervisor"
)

// version is set by the linker.
var version = "dev"

// The exit codes besides 0 and those of a second signal, which are 128 and its number.
const (
	exitFailure = 1
	exitUsage   = 2
)

// usageError is a fault of the command line or the environment.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func main() {
	if mustReap() {
		os.Exit(runInit())
	}
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs one command line and returns the exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	hint := ""
	code := exitCode(err)
	if code == exitUsage {
		hint = fmt.Sprintf("\nSee '%s --help'.\n", cmd.CommandPath())
	}
	complain(stderr, lines(err)+hint)
	return code
}

func exitCode(err error) int {
	var killed *supervisor.SignalError
	var usage usageError
	switch {
	case errors.As(err, &killed):
		return killed.ExitCode()
	case errors.As(err, &usage):
		return exitUsage
	}
	return exitFailure
}

// lines has a line for each of the errors joined in err.
func lines(err error) string {
	return "error: " + strings.ReplaceAll(err.Error(), "\n", "\nerror: ") + "\n"
}

// complain writes text to w. It gives up soon, and leaves its goroutine behind: a process must end although nobody
// reads the pipe that it writes to.
func complain(w io.Writer, text string) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = io.WriteString(w, text) // there is nobody else to tell
	}()
	select {
	case <-written:
	case <-time.After(250 * time.Millisecond):
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "vllm-vcr",
		Short: "Stands in for vLLM's engine core: no model, no GPU",
		Long: `vllm-vcr stands in for vLLM's engine core. It speaks vLLM's own engine-core protocol, so a real
vLLM frontend, Python or Rust, runs on top of it unchanged, with no model and no GPU.

  vllm-vcr play --engine-count 8 --control-address 127.0.0.1:8001
  curl -s localhost:8001/stats`,
		Version:           buildVersion(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},

		SuggestionsMinimumDistance: 2,
		Args: func(cmd *cobra.Command, args []string) error {
			return usageError{unknownCommand(cmd, args)}
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	root.SetVersionTemplate("vllm-vcr {{.Version}}\n")
	root.Flags().BoolP("version", "V", false, "print the version")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newServe(), newPlay(), newFrontend(), newWorker(), newFrontEndProcess(), newVersion(), newCompletions())
	root.SetHelpCommand(newHelp())
	return root
}

func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("no command given, want one of serve, play, frontend, version, completions")
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += fmt.Sprintf(", did you mean %q?", near[0])
	}
	return errors.New(text)
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "vllm-vcr %s\n", buildVersion())
			return err
		},
	}
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			switch {
			case err != nil:
				return usageError{err}
			case len(rest) > 0:
				return usageError{unknownCommand(cmd.Root(), rest)}
			}
			return about.Help()
		},
	}
}

// buildVersion is the linker's word, else that of the module's build information.
func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && version == "dev" && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return version
}

func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("argument %q: this command takes none", args[0])}
	}
	return nil
}
