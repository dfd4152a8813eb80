package browse

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/ledger"
)

func newPredicate(p *cli.Program) *cobra.Command {
	return cli.Group("predicate", "List the predicates in use", newPredicateList(p))
}

func newPredicateList(p *cli.Program) *cobra.Command {
	return p.ForOrg(&cobra.Command{
		Use:     "list",
		Short:   "List the predicates of an org, with attestation counts",
		Example: "  ledgerd predicate list --org acme",
	}, func(ctx context.Context, c *cli.Connection, org string, _ []string) error {
		columns := []string{"PREDICATE", "ATTESTATIONS", "LAST RECORDED"}
		return cli.PrintList(p, c.Predicates(ctx, org), 0, columns, func(n ledger.PredicateCount) []any {
			return []any{n.Predicate, n.Count, n.LastRecordedAt}
		})
	})
}
