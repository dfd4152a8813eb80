package browse

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/ledger"
)

func newAttestation(p *cli.Program) *cobra.Command {
	return cli.Group("attestation", "List and show attestations",
		newAttestationList(p), newAttestationShow(p), newAttestationEnvelope(p))
}

func newAttestationList(p *cli.Program) *cobra.Command {
	var filter client.AttestationFilter
	var limit int
	var rev string
	command := p.Takes(&cobra.Command{
		Use:   "list",
		Short: "List the attestations of a repo, newest first",
		Example: `  ledgerd attestation list acme/api --predicate 'test:*' --since 2026-11-20
  ledgerd attestation list acme/api --commit HEAD --status fail -o json`,
		RunE: func(command *cobra.Command, args []string) error {
			return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) (err error) {
				if rev != "" {
					if filter.Commit, err = gitrepo.Find(ctx, rev); err != nil {
						return err
					}
				}

				columns := []string{"RECORDED", "COMMIT", "PREDICATE", "STATUS", "IDENTITY", "ID"}
				return cli.PrintList(p, c.Attestations(ctx, name.Org, name.Repo, filter), limit, columns,
					func(a ledger.AttestationRecord) []any {
						return []any{a.RecordedAt, ledger.Short(a.Commit), a.Predicate, display.StatusOf(a), a.Identity, a.ID}
					})
			})
		},
	}, cli.RepoArg)

	flags := command.Flags()
	flags.StringVar(&filter.Predicate, "predicate", "", "only this `predicate` or, with ://, this predicate type; a * at "+
		"the end matches any suffix")
	flags.StringVar(&filter.Identity, "identity", "", "only those signed by this `DN` or plain name")
	flags.StringVar(&rev, "commit", "", "only those of this commit, a sha or a git `rev`")
	flags.Var(flagvalue.Past(&filter.Since), "since",
		"only those recorded since then: a date, date-time, yesterday, or how long ago, such as 5d")
	flagvalue.StatusVar(command, &filter.Status, "only those with this status")
	flags.BoolVar(&filter.OldestFirst, "oldest", false, "oldest first")
	cli.LimitFlag(command, &limit)

	return command
}

func newAttestationShow(p *cli.Program) *cobra.Command {
	return p.Takes(&cobra.Command{
		Use:     "show",
		Short:   "Show an attestation",
		Example: "  ledgerd attestation show acme/api att_01JD3X0V6Q8Z2M4N5P7R9T1W3Y",
		RunE: p.OnArg(func(ctx context.Context, c *cli.Connection, name cli.RepoName, id string) error {
			return cli.Shown(p, display.Attestation)(c.Attestation(ctx, name.Org, name.Repo, id))
		}),
	}, cli.RepoArg, "ID")
}

func newAttestationEnvelope(p *cli.Program) *cobra.Command {
	return p.Takes(&cobra.Command{
		Use:     "envelope",
		Short:   "Print the signed envelope of an attestation, byte for byte",
		Example: "  ledgerd attestation envelope acme/api att_01JD3X0V6Q8Z2M4N5P7R9T1W3Y >envelope.json",
		RunE: p.OnArg(func(ctx context.Context, c *cli.Connection, name cli.RepoName, id string) error {
			envelope, err := c.Envelope(ctx, name.Org, name.Repo, id)
			if err != nil {
				return err
			}
			_, err = p.Stdout.Exact().Write(envelope)
			return err
		}),
	}, cli.RepoArg, "ID")
}

func newViolation(p *cli.Program) *cobra.Command {
	return cli.Group("violation", "List deployments that did not count", newViolationList(p))
}

func newViolationList(p *cli.Program) *cobra.Command {
	var filter client.ViolationFilter
	var limit int
	var rev string
	command := p.Takes(&cobra.Command{
		Use:   "list",
		Short: "List the violations of an org or a repo, the latest first",
		Long:  display.ViolationHelp(),
		Example: `  ledgerd violation list acme --status open
  ledgerd violation list acme/api --commit HEAD -o json`,
		RunE: func(command *cobra.Command, args []string) error {
			return p.WithOrgOrRepo(command, args, func(ctx context.Context, c *cli.Connection, org, repo string) (err error) {
				if rev != "" && repo == "" {
					return cli.Usagef("--commit needs ORG/REPO")
				}
				if filter.Repo = repo; rev != "" {
					if filter.Commit, err = gitrepo.Find(ctx, rev); err != nil {
						return err
					}
				}
				return cli.PrintList(p, c.Violations(ctx, org, filter), limit, display.ViolationColumns(), display.ViolationRow)
			})
		},
	}, cli.OrgOrRepoArg)

	flags := command.Flags()
	flags.Var(&flagvalue.Parsed[ledger.ViolationStatus]{Value: &filter.Status, Kind: "STATUS",
		Parse: ledger.ParseViolationStatus}, "status", "only those that are open, or closed")
	flagvalue.Complete(command, "status", string(ledger.ViolationOpen), string(ledger.ViolationClosed))
	flags.StringVar(&filter.Predicate, "predicate", "", "only deployments with this `predicate`")
	flags.StringVar(&rev, "commit", "", "only those of this commit, a sha or a git `rev`")
	cli.LimitFlag(command, &limit)
	return command
}
