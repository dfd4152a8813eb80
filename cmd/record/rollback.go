package record

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// A rollbackRequest holds the arguments of rollback.
type rollbackRequest struct {
	environment string
	commit, to  string // revs
	reason      string
	signerFiles
}

func newRollback(p *cli.Program) *cobra.Command {
	var q rollbackRequest
	command := p.Takes(&cobra.Command{
		Use:   "rollback",
		Short: "Record that a commit was rolled back from an environment",
		Long: `Signs and records a rollback: the commit that runs in the environment ENV, or
--commit, no longer does. What runs instead is the commit that was deployed
before, or --to. The rollback itself is done by your tools, before this.

The gate of ENV is then shut for the commit, and pages say who rolled it back and
why. See 'ledgerd deploy --again' for what opens it. Other environments are not
affected. A rollback counts if the policy lets its signer deploy to ENV.

--to takes a commit whose deployment to ENV counted. Deploy any other with
'ledgerd deploy', which asks the policy.

EXIT STATUS
  0  recorded, and it counts
  1  not recorded
  2  usage error
  4  recorded, but it has no effect; or it is not known what runs`,
		Example: `  ledgerd rollback acme/api prod --reason 'memory leak' --key cd.key
  ledgerd rollback acme/api prod --to v1.4.2 --reason 'memory leak' --key cd.key`,
		RunE: func(command *cobra.Command, args []string) (err error) {
			if q.environment, err = environmentArg(p, command, args); err != nil {
				return err
			}
			return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) error {
				return rollBack(ctx, p, c, name, q)
			})
		},
	}, cli.RepoArg, "ENV")

	flags := command.Flags()
	flags.StringVar(&q.reason, "reason", "", "`text` that says why, at most 1000 characters")
	flags.StringVar(&q.to, "to", "", "commit that runs instead, a sha or a git `rev`")
	flags.StringVar(&q.commit, "commit", "", "commit to roll back, a sha or a git `rev` (default: what runs)")
	q.signerFiles.flags(command)
	flagvalue.Require(command, "reason", "key")
	flagvalue.RequireRev(command, "commit", "to")
	return command
}

// rollBack records a rollback.
func rollBack(ctx context.Context, p *cli.Program, c *cli.Connection, name cli.RepoName, q rollbackRequest) error {
	signer, err := q.load(p)
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
	record, err := signAndRecord(ctx, c, name, signer, statement)
	if err != nil {
		return err
	}
	err = p.Confirm(record, func() {
		if record.Notice == "" {
			terminal.Printf(p.Stdout, "Rolled %s back from %s (%s)\n", name.At(record.Commit), q.environment, record.ID)
		}
	})
	if err == nil && record.Notice != "" {
		return cli.Exitf(cli.ExitNotReached, "recorded as %s, but %s", record.ID, record.Notice)
	}
	return err
}

// rolledBack returns the commit to roll back.
func (q rollbackRequest) rolledBack(ctx context.Context, c *cli.Connection, name cli.RepoName) (string, error) {
	if q.commit != "" {
		return gitrepo.Resolve(ctx, q.commit)
	}
	return running(ctx, c, name, q.environment)
}
