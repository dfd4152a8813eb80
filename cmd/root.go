// Package cmd is the command line of ledgerd. Each group of commands has a package, with a
// file for each command, which parses the flags, calls the client of the HTTP API and
// prints the result. Those that manage a ledger need no server: without one, they run the
// API in their own process, on the database.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/browse"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/manage"
	"github.com/ledgerd/ledgerd/cmd/people"
	"github.com/ledgerd/ledgerd/cmd/record"
	"github.com/ledgerd/ledgerd/cmd/run"
	"github.com/ledgerd/ledgerd/cmd/start"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
)

func newRoot(p *cli.Program) *cobra.Command {
	root := &cobra.Command{
		Use:   "ledgerd",
		Short: "A self-hosted ledger of signed attestations about git commits",
		Long: `ledgerd records signed attestations about git commits and evaluates them against
a policy. A commit is DRAFT, VALIDATING, ATTESTED, PROMOTABLE or DEPLOYED.

Commands talk to the server given by --server or LEDGERD_URL. Without one they
open the database file directly, with full administrator rights, even while a
server is running on it.`,
		Example: `  ledgerd demo
  ledgerd serve --listen 127.0.0.1:8080 --database ledger.db
  ledgerd gate acme/api --commit HEAD --state PROMOTABLE`,
		Version:       run.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,

		DisableSuggestions:         true, // Main writes them in the line of the error
		SuggestionsMinimumDistance: 2,
	}
	root.SetVersionTemplate("ledgerd {{.Version}}\n")
	p.AddGlobalFlags(root)
	addGroup(root, "start", "Start", append(run.Commands(p), start.Commands(p)...))
	addGroup(root, "commits", "Record and check commits", record.Commands(p))
	addGroup(root, "browse", "See what is recorded", browse.Commands(p))
	addGroup(root, "manage", "Set up orgs, repos and signers", append(manage.Commands(p), people.Commands(p)...))
	addGroup(root, "tools", "Tools", run.Tools(p))
	root.SetHelpCommandGroupID("tools")
	root.SetCompletionCommandGroupID("tools")
	root.PersistentPreRunE = func(command *cobra.Command, _ []string) error {
		return errors.Join(cli.CheckGlobalFlags(command), p.SetOutput(command))
	}
	root.SetFlagErrorFunc(flagvalue.Error)
	p.MarkStart(root)
	p.AddArguments(root)
	return root
}

// addGroup adds commands to the root, which the help lists under a title.
func addGroup(root *cobra.Command, id, title string, commands []*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title + ":"})
	for _, command := range commands {
		command.GroupID = id
		root.AddCommand(command)
	}
}

// Root returns the command ledgerd with all of its subcommands, for what describes them. Use
// [Main] to run them.
func Root() *cobra.Command { return newRoot(cli.New(nil, io.Discard, io.Discard)) }

// Execute runs ledgerd with the arguments and standard streams of the process, and
// returns its exit status.
func Execute() int {
	return Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// Main runs ledgerd with the given arguments, without the name of the program, and
// returns its exit status.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := cli.New(stdin, stdout, stderr)
	root := newRoot(p)
	root.SetArgs(append([]string{}, args...))
	root.SetIn(stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	command, err := root.ExecuteContextC(ctx)
	status := p.Status(err)
	if err != nil && !cli.Silent(err) {
		fmt.Fprintf(p.Stderr, "ledgerd: %s%s\n", p.Describe(err), suggestion(root, err))
		if status == cli.ExitUsage {
			fmt.Fprintf(p.Stderr, "See '%s --help'.\n", command.CommandPath())
		}
	}
	return status
}

// suggestion returns which commands a user may have meant by one that does not exist.
func suggestion(root *cobra.Command, err error) string {
	var name string
	if n, _ := fmt.Sscanf(err.Error(), "unknown command %q for \"ledgerd\"", &name); n == 0 {
		return ""
	}
	list := root.SuggestionsFor(name)
	if len(list) == 0 {
		return ""
	}
	return " (did you mean " + flagvalue.OneOf(list) + "?)"
}
