package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newCompletions() *cobra.Command {
	return &cobra.Command{
		Use:       "completions SHELL",
		Short:     "Print a completion script for bash, zsh, fish or powershell",
		Example:   "  source <(vllm-vcr completions bash)",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE:      printCompletions,
	}
}

func printCompletions(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("%d arguments, want one shell; possible values: bash, zsh, fish, powershell", len(args))}
	}
	out, root := cmd.OutOrStdout(), cmd.Root()
	switch args[0] {
	case "bash":
		return root.GenBashCompletionV2(out, true)
	case "zsh":
		return root.GenZshCompletion(out)
	case "fish":
		return root.GenFishCompletion(out, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(out)
	}
	return usageError{fmt.Errorf("invalid value %q for SHELL; possible values: bash, zsh, fish, powershell", args[0])}
}
