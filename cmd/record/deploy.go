package record

import (
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/ledger"
)

func newDeploy(p *cli.Program) *cobra.Command {
	var a attestRequest
	var again bool
	command := p.Takes(&cobra.Command{
		Use:   "deploy [flags] [-- COMMAND [ARG]...]",
		Short: "Deploy a commit, and record that it was deployed",
		Long: `Checks the gate of the environment ENV for the commit, runs the command that
deploys it, and records a signed deployment (the predicate deploy:ENV). If the
gate is shut, no command is run and nothing is signed. Without a command, the
commit is deployed already, and that is recorded. If the policy says
delivery: true for ENV, the gate asks for each commit that is shipped, as
'ledgerd gate --env' does, also with --again.

If the command fails, an attempt is recorded, and the ledger goes on showing the
commit that ran before. If the command has changed what runs all the same, record
that with 'ledgerd rollback'.

A commit that was rolled back from ENV is deployed again only with --again and
--reason, signed by a deployer who has not rolled it back, or under an exception
whose requirement is rollback:ENV.

In a CI job, the commit is by default the head of the pull request or the commit
of the job. With --ci, the check of the gate needs LEDGERD_TOKEN.

EXIT STATUS
  The exit status of the command if it failed; 127 if it could not be started;
  128 plus the signal number if a signal stopped it. Otherwise:
  0  recorded
  1  not recorded; the command, if any, passed
  2  usage error; no command was run
  4  the gate is shut; no command was run`,
		Example: `  ledgerd deploy acme/api prod --commit HEAD --key cd.key -- ./deploy.sh
  ledgerd deploy acme/api prod --commit HEAD --key cd.key --again --reason 'it was the database' -- ./deploy.sh
  ledgerd deploy acme/api staging --commit HEAD --key cd.key`,
		Args: func(command *cobra.Command, args []string) error {
			a.names = args
			if dash := command.ArgsLenAtDash(); dash >= 0 {
				a.names, a.command = args[:dash], args[dash:]
			}
			return p.CheckArgs(command, a.names)
		},
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if again != (a.again != "") {
				return cli.Usagef("--again and --reason go together: say why the commit may be deployed after its rollback")
			}
			if a.environment, err = environmentArg(p, command, a.names); err != nil {
				return err
			}
			a.predicate, a.needsState = ledger.EnvironmentPredicate(a.environment), true
			if len(a.command) == 0 {
				a.status = ledger.Pass
			}
			if _, err := a.prepare(p, command); err != nil {
				return err
			}
			return attest(p, command, &a)
		},
	}, cli.RepoArg, "ENV")

	flags := command.Flags()
	flags.StringVar(&a.commit, "commit", "", "commit to deploy, a sha or a git `rev` (default HEAD)")
	flags.BoolVar(&again, "again", false, "deploy the commit although it was rolled back")
	flags.StringVar(&a.again, "reason", "", "with --again: `text` that says why, at most 1000 characters")
	a.required = ledger.Promotable
	flagvalue.StateVar(command, &a.required, "require-state", "state that the commit must have reached")
	a.signingFlags(command)
	flagvalue.RequireRev(command, "commit")
	return command
}

// environmentArg returns the environment that the first argument after the repo names.
func environmentArg(p *cli.Program, command *cobra.Command, args []string) (string, error) {
	name, err := ledger.ParseEnvironment(p.RestArgs(command, args)[0])
	if err != nil {
		return "", cli.Usagef("%w", err)
	}
	return name, nil
}
