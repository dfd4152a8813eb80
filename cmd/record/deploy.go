package record

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/display"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/signing"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

func newDeploy(p *cli.Program) *cobra.Command {
	var a attestRequest
	var again bool
	command := &cobra.Command{
		Use:   "deploy [ORG/REPO] ENV [flags] [-- COMMAND [ARG]...]",
		Short: "Deploy a commit, and record that it was deployed",
		Long: `Checks the gate of the environment ENV for the commit, runs the command that
deploys it, and records a signed deployment (the predicate deploy:ENV). If the
gate is shut, no command is run and nothing is signed. Without a command, the
commit is deployed already, and that is recorded.

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
			return cli.TakesRepo(command, a.names)
		},
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if again != (a.again != "") {
				return cli.Usagef("--again and --reason go together: say why the commit may be deployed after its rollback")
			}
			if a.environment, err = environmentArg(command, a.names); err != nil {
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
	}

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

// environmentArg returns the environment that the last argument names.
func environmentArg(command *cobra.Command, args []string) (string, error) {
	name, err := ledger.ParseEnvironment(cli.RestArgs(command, args)[0])
	if err != nil {
		return "", cli.Usagef("%w", err)
	}
	return name, nil
}

// A rollbackRequest holds the arguments of rollback.
type rollbackRequest struct {
	environment string
	commit, to  string // revs
	reason      string
	key, cert   string // file names
}

func newRollback(p *cli.Program) *cobra.Command {
	var q rollbackRequest
	command := &cobra.Command{
		Use:   "rollback [ORG/REPO] ENV",
		Short: "Record that a commit was rolled back from an environment",
		Long: `Signs and records a rollback: the commit that runs in the environment ENV, or
--commit, no longer does. What runs instead is the commit that was deployed
before, or --to. The rollback itself is done by your tools, before this.

The gate of ENV is then shut for the commit, and pages say who rolled it back and
why. See 'ledgerd deploy --again' for what opens it. Other environments are not
affected. A rollback counts if the policy lets its signer deploy to ENV.

--to takes a commit whose deployment to ENV counted. Deploy any other with
'ledgerd deploy', which asks the policy.`,
		Example: `  ledgerd rollback acme/api prod --reason 'memory leak' --key cd.key
  ledgerd rollback acme/api prod --to v1.4.2 --reason 'memory leak' --key cd.key`,
		Args: cli.TakesRepo,
		RunE: func(command *cobra.Command, args []string) (err error) {
			if q.environment, err = environmentArg(command, args); err != nil {
				return err
			}
			return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) error {
				return rollBack(ctx, p, c, name, q)
			})
		},
	}

	flags := command.Flags()
	flags.StringVar(&q.reason, "reason", "", "`text` that says why, at most 1000 characters")
	flags.StringVar(&q.to, "to", "", "commit that runs instead, a sha or a git `rev`")
	flags.StringVar(&q.commit, "commit", "", "commit to roll back, a sha or a git `rev` (default: what runs)")
	flags.StringVar(&q.key, "key", "", "private key to sign with, a PEM `file`")
	flags.StringVar(&q.cert, "cert", "", "certificate of the key, with its chain, a PEM `file`")
	flagvalue.Require(command, "reason", "key")
	flagvalue.RequireRev(command, "commit", "to")
	return command
}

// rollBack records a rollback.
func rollBack(ctx context.Context, p *cli.Program, c *cli.Connection, name cli.RepoName, q rollbackRequest) error {
	signer, err := signing.Load(q.key, q.cert)
	if err != nil {
		return err
	}
	sha, err := q.rolledBack(ctx, c, name)
	if err != nil {
		return err
	}
	r := attestation.Rollback{Repo: name.String(), Environment: q.environment, Reason: q.reason,
		IssuedOn: ledger.TimeOf(time.Now())}
	if q.to != "" {
		if r.To.SHA, err = gitrepo.Resolve(ctx, q.to); err != nil {
			return err
		}
	}

	statement, err := attestation.NewRollbackStatement(sha, r)
	if err != nil {
		return err
	}
	envelope, err := signer.Sign(statement)
	if err != nil {
		return err
	}
	record, _, err := c.Record(ctx, name.Org, name.Repo, envelope)
	if err != nil {
		return err
	}
	err = p.Confirm(record, func() {
		terminal.Printf(p.Stdout, "Rolled %s back from %s (%s)\n", name.At(record.Commit), q.environment, record.ID)
	})
	display.Notice(p.Stderr, record)
	return err
}

// rolledBack returns the commit to roll back.
func (q rollbackRequest) rolledBack(ctx context.Context, c *cli.Connection, name cli.RepoName) (string, error) {
	if q.commit != "" {
		return gitrepo.Resolve(ctx, q.commit)
	}
	return running(ctx, c, name, q.environment)
}

// running returns the commit that runs in an environment.
func running(ctx context.Context, c *cli.Connection, name cli.RepoName, environment string) (sha string, err error) {
	for e, err := range c.Environments(ctx, name.Org, client.EnvironmentFilter{Repo: name.Repo, Name: environment}) {
		if err != nil {
			return "", err
		}
		if e.Deployment != nil {
			return e.Deployment.Commit, nil
		}
	}
	return "", cli.Exitf(cli.ExitNotReached, "it is not known which commit of %s runs in %s (see 'ledgerd environment "+
		"list')", name, environment)
}
