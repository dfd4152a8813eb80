package manage

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/cli"
	"github.com/ledgerd/ledgerd/ledger"
)

func newOrg(p *cli.Program) *cobra.Command {
	return cli.Group("org", "Manage the orgs of a ledger", newOrgCreate(p), newOrgList(p))
}

func newOrgCreate(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "create NAME",
		Short: "Create an org, and the database if it does not exist",
		Long: `Creates an org, which owns repos, identities and tokens. Only the administrator
of the host may do this, so the command works on the database file. If the file
does not exist, it is created.`,
		Example: "  ledgerd org create acme --database ledger.db",
		Args:    cli.Takes("NAME"),
		RunE: func(command *cobra.Command, args []string) error {
			if err := ledger.CheckOrg(args[0]); err != nil {
				return err
			}
			l, err := p.Locate(command)
			if err != nil {
				return err
			}

			create := func(ctx context.Context, c *cli.Connection) error {
				org, err := c.CreateOrg(ctx, ledger.NewOrg{Name: args[0]})
				if err != nil {
					return err
				}
				return p.Confirm(org, func() { fmt.Fprintf(p.Stdout, "Created org %s\n", org.Name) })
			}
			if l.URL == "" {
				return l.UseNew(command.Context(), create)
			}
			return l.Explain(l.Use(command.Context(), create))
		},
	}
}

func newOrgList(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the orgs",
		Example: "  ledgerd org list --database ledger.db",
		Args:    cli.Takes(),
		RunE: func(command *cobra.Command, _ []string) error {
			l, err := p.Locate(command)
			if err != nil {
				return err
			}
			return l.Explain(l.Use(command.Context(), func(ctx context.Context, c *cli.Connection) error {
				return cli.PrintList(p, c.Orgs(ctx), 0, []string{"ORG", "CREATED"}, func(org ledger.Org) []any {
					return []any{org.Name, org.CreatedAt}
				})
			}))
		},
	}
}
