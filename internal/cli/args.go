package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/flagvalue"
)

// Group returns a command that only has subcommands.
func Group(use, short string, children ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{
		Use:                   use,
		Short:                 short,
		Args:                  cobra.ArbitraryArgs,
		DisableFlagsInUseLine: true,
	}
	command.AddCommand(children...)
	command.RunE = func(command *cobra.Command, args []string) error {
		var names []string
		for _, child := range children {
			names = append(names, child.Name())
		}
		if len(args) > 0 {
			return Usagef("unknown command %q for %s: use %s", args[0], command.CommandPath(), flagvalue.OneOf(names))
		}
		return Usagef("%s requires a command: use %s", command.CommandPath(), flagvalue.OneOf(names))
	}
	return command
}

// Takes returns a check that a command has the named arguments. A name in brackets
// is optional.
func Takes(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > len(names) {
			return fmt.Errorf("unexpected argument %q", args[len(names)])
		}
		if len(args) < len(names) && !isOptional(names[len(args)]) {
			return fmt.Errorf("%s is required", names[len(args)])
		}
		return nil
	}
}

func isOptional(name string) bool {
	return strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]")
}

// Changed returns the value of a flag, or nil if the flag is not set.
func Changed[T any](command *cobra.Command, flag string, value *T) *T {
	if !command.Flags().Changed(flag) {
		return nil
	}
	return value
}
