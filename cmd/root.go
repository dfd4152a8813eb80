package cmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
)

// globalFlags are those that every command has.
type globalFlags struct {
	config string
	url    string
	token  string
	output string
}

func newRoot(p *program) *cobra.Command {
	root := &cobra.Command{
		Use:   "ledgerd",
		Short: "A self-hosted ledger of signed attestations about git commits",
		Long: `ledgerd records signed attestations about git commits, and tells from them and
a policy contract how far each commit has come: DRAFT, VALIDATING, ATTESTED,
PROMOTABLE, DEPLOYED.

Commands that manage a ledger speak to the server that --url names. Without it
they open the database file themselves, as the administrator of the machine,
also while a server runs on it.`,
		Example: `  ledgerd demo
  ledgerd serve --listen 127.0.0.1:8080 --database ledger.db
  ledgerd gate acme/api --commit HEAD --state PROMOTABLE`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	p.addGlobalFlags(root)
	root.AddCommand(
		newServe(p),
		newDemo(p),
		newOrg(p),
		newRepo(p),
		newToken(p),
		newIdentity(p),
		newPolicy(p),
		newCommit(p),
		newAttestation(p),
		newAttest(p),
		newGate(p),
		newRadar(p),
		newPredicate(p),
		newEvents(p),
		newWebhook(p),
		newKeygen(p),
		newConfig(p),
		newBench(p),
		newVersion(p),
	)
	markBeginning(p, root)
	return root
}

func (p *program) addGlobalFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&p.global.config, "config", "", "configuration `file` (LEDGERD_CONFIG)")
	flags.String("database", config.Default().Database, "database `file` (LEDGERD_DATABASE)")
	flags.Bool("no-copy", config.Default().NoCopy, "do not copy the database before its schema is migrated (LEDGERD_NO_COPY)")
	flags.StringVar(&p.global.url, "url", "", "`URL` of the server to speak to (LEDGERD_URL)")
	flags.StringVar(&p.global.token, "token", "", "API `token` for that server; others on this machine can see it, so rather set LEDGERD_TOKEN or LEDGERD_TOKEN_FILE")
	flagvalue.ChoiceVar(root, flags, &p.global.output, "output", "o", "how to print", "table", "json")
	root.MarkFlagsMutuallyExclusive("database", "url")
	root.MarkFlagsMutuallyExclusive("no-copy", "url")
}

// markBeginning makes every command tell when it starts to work.
func markBeginning(p *program, command *cobra.Command) {
	if run := command.RunE; run != nil {
		command.RunE = func(command *cobra.Command, args []string) error {
			p.began = true
			return run(command, args)
		}
	}
	for _, child := range command.Commands() {
		markBeginning(p, child)
	}
}

// group returns a command that only holds others.
func group(use, short string, children ...*cobra.Command) *cobra.Command {
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
			return usagef("%s has no command %q: choose from %s", command.CommandPath(), args[0], strings.Join(names, ", "))
		}
		return usagef("%s needs a command: choose from %s", command.CommandPath(), strings.Join(names, ", "))
	}
	return command
}

// takes checks that a command has the arguments of the given names; a name in
// brackets may be left out.
func takes(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > len(names) {
			return fmt.Errorf("unexpected argument %q", args[len(names)])
		}
		if len(args) < len(names) && !strings.HasPrefix(names[len(args)], "[") {
			return fmt.Errorf("%s is missing", names[len(args)])
		}
		return nil
	}
}
