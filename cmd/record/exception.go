package record

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/cmd/internal/signing"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

func newException(p *cli.Program) *cobra.Command {
	return cli.Group("exception", "Grant, list and end exceptions from the policy",
		newExceptionGrant(p), newExceptionList(p), newExceptionEnd(p))
}

// An exceptionRequest holds the arguments of grant and end.
type exceptionRequest struct {
	rev         string
	requirement string
	reason      string
	until       ledger.Time
	lasts       ledger.Duration
	signerFiles
}

// flags defines the flags that grant and end share.
func (q *exceptionRequest) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&q.rev, "commit", "HEAD", "commit of the exception, a sha or a git `rev`")
	flags.StringVar(&q.requirement, "requirement", "", "`name` of the requirement in the policy")
	flags.StringVar(&q.reason, "reason", "", "`text` that says why, at most 1000 characters")
	q.signerFiles.flags(command)
	flagvalue.Require(command, "requirement", "reason", "key")
	flagvalue.RequireRev(command, "commit")
}

func newExceptionGrant(p *cli.Program) *cobra.Command {
	var q exceptionRequest
	command := p.Takes(&cobra.Command{
		Use:   "grant",
		Short: "Stand in for a requirement that a commit does not meet",
		Long: `Signs and records an exception: until it ends, it stands in for one signer of one
requirement of one commit, and overrides failures. It counts only if the policy
lets its signer grant exceptions of this duration. A later one for the same
requirement takes its place.

The requirement must have a name in the policy; see 'ledgerd policy show'. For
rollback:ENV, the commit may be deployed to ENV although it was rolled back.

EXIT STATUS
  0  recorded, and it counts
  1  not recorded
  2  usage error
  4  recorded, but it does not count`,
		Example: `  ledgerd exception grant acme/api --commit HEAD --requirement review --reason 'INC-42: fix is urgent' \
    --for 24h --key alice.key
  ledgerd exception grant acme/api --commit adbc8813901b --requirement review --reason 'INC-42' \
    --until 2026-11-21T09:00:00Z --key alice.key --cert alice.crt`,
		RunE: func(command *cobra.Command, args []string) error {
			now := ledger.TimeOf(time.Now())
			if q.lasts > 0 {
				q.until = now.Add(q.lasts.Std())
			}
			if q.until <= now {
				return cli.Usagef("invalid --until %s: use a time in the future", q.until)
			}
			return recordException(p, command, args, q)
		},
	}, cli.RepoArg)

	q.flags(command)
	command.Flags().Var(flagvalue.Expiry(&q.until), "until",
		"when the exception ends: a date, a date-time, or how long from now, such as 3d")
	command.Flags().Var(&flagvalue.Parsed[ledger.Duration]{Value: &q.lasts, Kind: "DURATION", Parse: ledger.ParseDuration},
		"for", "how long the exception lasts, such as 24h or 3d")
	flagvalue.RequireOne(command, "until", "for")
	flagvalue.Exclude(command, "until", "for")
	return command
}

func newExceptionEnd(p *cli.Program) *cobra.Command {
	var q exceptionRequest
	command := p.Takes(&cobra.Command{
		Use:   "end",
		Short: "End the exceptions for a requirement of a commit",
		Long: `Signs and records the end of the exceptions for one requirement of one commit, by
any signer. Like an exception, it counts only if the policy lets its signer grant
exceptions.

EXIT STATUS
  0  recorded, and no exception for the requirement is active
  1  not recorded
  2  usage error
  4  recorded, but it does not count: an exception is still active`,
		Example: `  ledgerd exception end acme/api --commit HEAD --requirement review --reason 'reviewed' --key alice.key`,
		RunE:    func(command *cobra.Command, args []string) error { return recordException(p, command, args, q) },
	}, cli.RepoArg)
	q.flags(command)
	return command
}

// anEarlierDay is how long ago an exception that ends others has ended. It is longer than
// the clocks of two machines differ.
const anEarlierDay = 24 * time.Hour

// maxCounting is how many exceptions of a commit count at most: the newest.
const maxCounting = 200

// recordException records an exception. Without an end, it ends those before it.
func recordException(p *cli.Program, command *cobra.Command, args []string, q exceptionRequest) error {
	return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) error {
		signer, err := q.load(p)
		if err != nil {
			return err
		}
		sha, err := gitrepo.Resolve(ctx, q.rev)
		if err != nil {
			return err
		}

		now := ledger.TimeOf(time.Now())
		x := attestation.Exception{Repo: name.String(), Requirement: q.requirement, Reason: q.reason, Until: q.until,
			IssuedOn: now}
		if x.Until == 0 {
			x.Until = now.Add(-anEarlierDay)
		}
		statement, err := attestation.NewExceptionStatement(sha, x)
		if err != nil {
			return err
		}
		record, err := signAndRecord(ctx, c, name, signer, statement)
		if err != nil {
			return err
		}
		return exceptionResult(ctx, p, c, name, record)
	})
}

// signAndRecord signs a statement and records it.
func signAndRecord(
	ctx context.Context, c *cli.Connection, name cli.RepoName, signer *signing.Signer, statement []byte,
) (record ledger.AttestationRecord, err error) {
	envelope, err := signer.Sign(statement)
	if err != nil {
		return record, err
	}
	record, _, err = c.Record(ctx, name.Org, name.Repo, envelope)
	return record, err
}

// exceptionResult prints an exception that was recorded, and returns an error with the exit
// status if it does not count.
func exceptionResult(
	ctx context.Context, p *cli.Program, c *cli.Connection, name cli.RepoName, record ledger.AttestationRecord,
) error {
	list, err := client.Collect(c.Exceptions(ctx, name.Org, name.Repo, client.ExceptionFilter{Commit: record.Commit}),
		maxCounting)
	if err != nil {
		return fmt.Errorf("recorded as %s, but its effect is unknown: %w", record.ID, err)
	}
	commit, err := c.Commit(ctx, name.Org, name.Repo, record.Commit)
	if err != nil {
		return fmt.Errorf("recorded as %s, but its effect is unknown: %w", record.ID, err)
	}
	own, active := display.FindException(list, record.ID)
	if own == nil {
		return fmt.Errorf("recorded as %s, but it is not in the list of exceptions", record.ID)
	}

	verb, counts := "Granted an exception for", own.Active
	if own.Ends() {
		verb, counts = "Ended the exceptions for", !active
	}
	err = p.Confirm(own, func() {
		if counts {
			terminal.Printf(p.Stdout, "%s %s of %s (%s). State: %s\n", verb, terminal.Printable(own.Requirement),
				name.At(own.Commit), own.Attestation, commit.State)
		}
	})
	if err == nil && !counts {
		return cli.Exitf(cli.ExitNotReached, "recorded as %s, but it does not count: %s", own.Attestation, own.Inactive)
	}
	return err
}

func newExceptionList(p *cli.Program) *cobra.Command {
	var filter client.ExceptionFilter
	var limit int
	command := p.Takes(&cobra.Command{
		Use:   "list",
		Short: "List the exceptions of a repo, newest first",
		Long: `Lists the exceptions of a repo, newest first, and whether each of them counts.
With --active, lists only those that count, and those that end first come first.`,
		Example: `  ledgerd exception list acme/api --active
  ledgerd exception list acme/api --commit HEAD -o json`,
		RunE: func(command *cobra.Command, args []string) error {
			return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) (err error) {
				if filter.Commit != "" {
					if filter.Commit, err = gitrepo.Find(ctx, filter.Commit); err != nil {
						return err
					}
				}
				columns := []string{"COMMIT", "REQUIREMENT", "UNTIL", "IDENTITY", "REASON", "STATUS"}
				now := time.Now()
				return cli.PrintList(p, c.Exceptions(ctx, name.Org, name.Repo, filter), limit, columns,
					func(x ledger.ExceptionRecord) []any { return display.ExceptionRow(x, now) })
			})
		},
	}, cli.RepoArg)

	flags := command.Flags()
	flags.StringVar(&filter.Commit, "commit", "", "only those of this commit, a sha or a git `rev`")
	flags.BoolVar(&filter.Active, "active", false, "only those that count now")
	cli.LimitFlag(command, &limit)
	return command
}
