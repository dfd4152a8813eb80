package record

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

func newEnvironment(p *cli.Program) *cobra.Command {
	return cli.Group("environment", "List what runs where, and say what runs already",
		newEnvironmentList(p), newEnvironmentBaseline(p))
}

func newEnvironmentList(p *cli.Program) *cobra.Command {
	var filter client.EnvironmentFilter
	var limit int
	command := p.Takes(&cobra.Command{
		Use: "list", Short: "List what runs in the environments of an org", Long: display.EnvironmentHelp(),
		Example: "  ledgerd environment list acme\n  ledgerd environment list acme --repo api --environment prod -o json",
		RunE: func(command *cobra.Command, args []string) error {
			if name, ok := ledger.EnvironmentOf(filter.Name); ok { // the predicate
				filter.Name = name
			}
			return p.WithOrgArg(command, args, &filter.Repo, func(ctx context.Context, c *cli.Connection, org string) error {
				return cli.PrintList(p, c.Environments(ctx, org, filter), limit, display.EnvironmentColumns(),
					display.EnvironmentRows(time.Now()))
			})
		},
	}, "[ORG]")
	command.Flags().StringVar(&filter.Repo, "repo", "", "only environments of this `repo`, such as api or acme/api")
	command.Flags().StringVar(&filter.Name, "environment", "",
		"only environments with this `name`, such as prod or deploy:prod")
	cli.LimitFlag(command, &limit)
	return command
}

// A baselineRequest holds the arguments of environment baseline.
type baselineRequest struct {
	environment string
	rev         string
	reason      string
	signerFiles
}

func newEnvironmentBaseline(p *cli.Program) *cobra.Command {
	var q baselineRequest
	command := p.Takes(&cobra.Command{
		Use:   "baseline",
		Short: "Say which commit runs in an environment already",
		Long: `Signs and records a baseline: the commit REV, a sha or a git rev, runs in the
environment ENV already, although nothing was deployed there with ledgerd yet.
Use it once, when you begin to record deployments.

The environment shows the baseline until the first deployment there counts, and
again if all of them were rolled back. A newer baseline takes its place. It
deploys nothing: states and violations do not change. If the policy says
delivery: true, gates of ENV ask for what leads to a commit and not to REV.

The signer needs --may 'baseline:*,deploy:ENV', and must be among those whom the
policy lets deploy to ENV. An admin confirms the baseline by sending it: use a
token with the scope admin.`,
		Example: "  ledgerd environment baseline acme/api prod v1.4.2 --key cd.key --reason 'deployed by hand in May'",
		RunE: func(command *cobra.Command, args []string) (err error) {
			if q.environment, err = environmentArg(p, command, args); err != nil {
				return err
			}
			q.rev = p.RestArgs(command, args)[1]
			return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) error {
				return setBaseline(ctx, p, c, name, q)
			})
		},
	}, cli.RepoArg, "ENV", "REV")

	command.Flags().StringVar(&q.reason, "reason", "", "`text` that says how you know, at most 1000 characters")
	q.signerFiles.flags(command)
	flagvalue.Require(command, "key")
	return command
}

// setBaseline records a baseline.
func setBaseline(ctx context.Context, p *cli.Program, c *cli.Connection, name cli.RepoName, q baselineRequest) error {
	signer, err := q.load(p)
	if err != nil {
		return err
	}
	sha, err := gitrepo.Resolve(ctx, q.rev)
	if err != nil {
		return err
	}
	statement, err := attestation.NewBaselineStatement(sha, attestation.Baseline{Repo: name.String(),
		Environment: q.environment, Reason: q.reason, IssuedOn: ledger.TimeOf(time.Now())})
	if err != nil {
		return err
	}
	record, err := signAndRecord(ctx, c, name, signer, statement)
	if err != nil {
		return err
	}

	return p.Confirm(record, func() {
		terminal.Printf(p.Stdout, "%s is the baseline of %s (%s)\n", name.At(record.Commit), q.environment, record.ID)
		if record.Notice != "" {
			terminal.Printf(p.Stderr, "NOTE: %s\n", record.Notice)
		}
	})
}
