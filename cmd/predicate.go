package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/ledger"
)

func newPredicate(p *program) *cobra.Command {
	return group("predicate", "List the predicates in use", newPredicateList(p))
}

func newPredicateList(p *program) *cobra.Command {
	var org string
	command := &cobra.Command{
		Use:     "list",
		Short:   "List the predicates of an org, with attestation counts",
		Example: "  ledgerd predicate list --org acme",
		Args:    takes(),
		RunE: func(command *cobra.Command, _ []string) error {
			return p.withOrg(command, org, func(ctx context.Context, c *connection, org string) error {
				columns := []string{"PREDICATE", "ATTESTATIONS", "LAST RECORDED"}
				return printList(p, c.Predicates(ctx, org), 0, columns, func(n ledger.PredicateCount) []any {
					return []any{n.Predicate, n.Count, n.LastRecordedAt}
				})
			})
		},
	}
	orgFlag(command, &org)
	return command
}
