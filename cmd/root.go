package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/buildinfo"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
)

func newRoot(p *program) *cobra.Command {
	root := &cobra.Command{
		Use:   "ledgerd",
		Short: "A self-hosted ledger of signed attestations about git commits",
		Long: `ledgerd records signed attestations about git commits and evaluates them against
a policy. A commit is DRAFT, VALIDATING, ATTESTED, PROMOTABLE or DEPLOYED.

Commands that manage a ledger talk to the server given by --url or LEDGERD_URL.
Without it they open the database file directly, with full administrator rights,
even while a server is running on it.`,
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
		newException(p),
		newCommit(p),
		newAttestation(p),
		newAttest(p),
		newViolation(p),
		newEnvironment(p),
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
	root.PersistentPreRunE = func(command *cobra.Command, _ []string) error {
		inherited := command.InheritedFlags() // without those that the command redefines
		return errors.Join(
			flagvalue.CheckExclusive(inherited, "database", "url"),
			flagvalue.CheckExclusive(inherited, "no-copy", "url"))
	}
	root.SetFlagErrorFunc(flagvalue.Error)
	markStart(p, root)
	return root
}

func (p *program) addGlobalFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&p.global.config, "config", "", "configuration `file` (LEDGERD_CONFIG)")
	flags.String("database", config.Default().Database, "database `file` (LEDGERD_DATABASE)")
	flags.Bool("no-copy", config.Default().NoCopy,
		"migrate the schema without copying the database first (LEDGERD_NO_COPY)")
	flags.StringVar(&p.global.url, "url", "", "`URL` of the server (LEDGERD_URL)")
	flags.StringVar(&p.global.token, "token", "", "API `token`; visible to other users of this machine: prefer "+
		"LEDGERD_TOKEN or LEDGERD_TOKEN_FILE")
	flagvalue.ChoiceVar(root, flags, &p.global.output, "output", "o", "output format", "table", "json")
	root.MarkFlagsMutuallyExclusive("database", "url")
	root.MarkFlagsMutuallyExclusive("no-copy", "url")
}

// markStart makes every command set p.command when it starts.
func markStart(p *program, command *cobra.Command) {
	if run := command.RunE; run != nil {
		command.RunE = func(command *cobra.Command, args []string) error {
			p.command = command
			return run(command, args)
		}
	}
	for _, child := range command.Commands() {
		markStart(p, child)
	}
}

// Execute runs ledgerd with the arguments and standard streams of the process, and
// returns its exit status.
func Execute() int {
	return Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// Main runs ledgerd with the given arguments, without the name of the program, and
// returns its exit status.
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
		fmt.Fprintf(stderr, "ledgerd: %s\n", p.describe(err))
		if status == exitUsage {
			fmt.Fprintf(stderr, "See '%s --help'.\n", command.CommandPath())
		}
	}
	return status
}

// status returns the exit status for an error.
func (p *program) status(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.status
	}
	if p.command == nil {
		return exitUsage
	}
	return exitFailure
}

// silent reports whether an error only sets the exit status and has no message.
func silent(err error) bool {
	e, ok := errors.AsType[*exitError](err)
	return ok && e.err == nil
}

func newVersion(p *program) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  ledgerd version\n  ledgerd version -o json",
		Args:    takes(),
		RunE: func(*cobra.Command, []string) error {
			record := struct {
				Version string `json:"version"`
				Go      string `json:"go"`
				OS      string `json:"os"`
				Arch    string `json:"arch"`
			}{buildinfo.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
			return p.print(record, func() {
				fmt.Fprintf(p.stdout, "ledgerd %s (%s, %s/%s)\n", record.Version, record.Go, record.OS, record.Arch)
			})
		},
	}
}
