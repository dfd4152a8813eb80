package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
)

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
		newBench(p, Main),
		newVersion(p),
	)
	markBeginning(p, root)
	return root
}

func (p *program) addGlobalFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&p.global.config, "config", "", "configuration `file` (LEDGERD_CONFIG)")
	flags.String("database", config.Default().Database, "database `file` (LEDGERD_DATABASE)")
	flags.Bool("no-copy", config.Default().NoCopy,
		"do not copy the database before its schema is migrated (LEDGERD_NO_COPY)")
	flags.StringVar(&p.global.url, "url", "", "`URL` of the server to speak to (LEDGERD_URL)")
	flags.StringVar(&p.global.token, "token", "", "API `token` for that server; others on this machine can see it, "+
		"so rather set LEDGERD_TOKEN or LEDGERD_TOKEN_FILE")
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

// Execute runs ledgerd as the operating system started it and returns its exit
// status.
func Execute() int {
	return Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// Main runs ledgerd with the given arguments, the program's name not among
// them, and returns its exit status.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &program{stdin: stdin, stdout: stdout, stderr: stderr}
	root := newRoot(p)
	root.SetArgs(append([]string{}, args...))
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	status := p.status(err)
	if err != nil && !silent(err) {
		fmt.Fprintf(stderr, "ledgerd: %s\n", describe(err))
		if status == exitUsage {
			fmt.Fprintf(stderr, "Run '%s --help' for how to use it.\n", command.CommandPath())
		}
	}
	return status
}

func (p *program) status(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.status
	}
	if !p.began {
		return exitUsage
	}
	return exitFailure
}

func silent(err error) bool {
	e, ok := errors.AsType[*exitError](err)
	return ok && e.err == nil
}
