package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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

// Names of arguments that are not like others.
const (
	// RepoArg is the repo of a command: see [Program.Repo]. It can be left out before other arguments.
	RepoArg = "[ORG/REPO]"
	// OrgOrRepoArg is an org, or one of its repos.
	OrgOrRepoArg = "[ORG[/REPO]]"
	// RevArg is a git revision.
	RevArg = "[REV]"
)

// Takes declares the names of a command's arguments, and returns the command. A name in brackets is
// optional. The usage line, the check of the arguments and their completion follow from the names,
// and --repo, if there can be a repo.
func (p *Program) Takes(command *cobra.Command, names ...string) *cobra.Command {
	name, rest, _ := strings.Cut(command.Use, " ")
	command.Use = strings.TrimSpace(name + " " + strings.Join(names, " ") + " " + rest)
	p.arguments[command] = names
	if names[0] == RepoArg || names[0] == OrgOrRepoArg {
		command.Flags().StringVar(&p.Global.Repo, "repo", "", "`repo`, as ORG/REPO or REPO (LEDGERD_REPO)")
	}
	return command
}

// CheckArgs checks the arguments of a command against those that it takes.
func (p *Program) CheckArgs(command *cobra.Command, args []string) error {
	_, _, err := p.splitArgs(command, args)
	return err
}

// RestArgs returns the arguments after ORG/REPO, of a command that takes no REV.
func (p *Program) RestArgs(command *cobra.Command, args []string) []string {
	_, rest, _ := p.splitArgs(command, args) // CheckArgs has checked them
	return rest
}

// splitArgs splits the arguments of a command into the repo, if there is one, and the
// rest. The first argument is the repo if all arguments are there, or if it has the form
// ORG/REPO. With --repo, none is.
func (p *Program) splitArgs(command *cobra.Command, args []string) (repo string, rest []string, err error) {
	names := p.arguments[command]
	if len(names) == 0 || names[0] != RepoArg {
		return "", args, checkArgs(names, args)
	}
	names = names[1:]
	flagged := isSet(command.Flags(), "repo")
	if flagged && len(args) > len(names) && isRepoName(args[0]) {
		return "", nil, Usagef("ORG/REPO and --repo are mutually exclusive")
	}

	rest = args
	if !flagged && len(args) > 0 && (len(args) > len(names) || isRepoName(args[0])) {
		repo, rest = args[0], args[1:]
	}
	return repo, rest, checkArgs(names, rest)
}

func isSet(flags *pflag.FlagSet, name string) bool {
	flag := flags.Lookup(name)
	return flag != nil && flag.Value.String() != ""
}

func checkArgs(names, args []string) error {
	if len(args) > len(names) {
		return fmt.Errorf("unexpected argument %q", args[len(names)])
	}
	if len(args) < len(names) && !isOptional(names[len(args)]) {
		return fmt.Errorf("%s is required", names[len(args)])
	}
	return nil
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
