package manage

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

func newOrg(p *cli.Program) *cobra.Command {
	return cli.Group("org", "Manage the orgs of a ledger", newOrgCreate(p), newOrgList(p), newOrgUpdate(p),
		newOrgRename(p), newOrgArchive(p, true), newOrgArchive(p, false), newOrgDelete(p), newOrgPurge(p))
}

func newOrgCreate(p *cli.Program) *cobra.Command {
	return p.Takes(&cobra.Command{
		Use:   "create",
		Short: "Create an org, and the database if it does not exist",
		Long: `Creates an org, which owns repos, identities and tokens. Only the administrator
of the host may do this, so the command works on the database file. If the file
does not exist, it is created.`,
		Example: "  ledgerd org create acme --database ledger.db",
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
				return p.Confirm(org, func() { terminal.Printf(p.Stdout, "Created org %s\n", org.Name) })
			}
			if l.URL == "" {
				return l.UseNew(command.Context(), create)
			}
			return l.Explain(l.Use(command.Context(), create))
		},
	}, "NAME")
}

func newOrgList(p *cli.Program) *cobra.Command {
	var deleted bool
	command := &cobra.Command{
		Use:     "list",
		Short:   "List the orgs",
		Example: "  ledgerd org list --database ledger.db",
		RunE: func(command *cobra.Command, _ []string) error {
			l, err := p.Locate(command)
			if err != nil {
				return err
			}
			return l.Explain(l.Use(command.Context(), func(ctx context.Context, c *cli.Connection) error {
				if deleted {
					return cli.PrintList(p, c.DeletedOrgs(ctx), 0, []string{"ORG", "FORMERLY", "DELETED"}, func(org ledger.Org) []any {
						return []any{org.Name, display.FormerNames(org.FormerNames), org.DeletedAt}
					})
				}
				return cli.PrintList(p, c.Orgs(ctx), 0, []string{"ORG", "CREATED"}, func(org ledger.Org) []any {
					return []any{org.Name, org.CreatedAt}
				})
			}))
		},
	}
	command.Flags().BoolVar(&deleted, "deleted", false, "list only the deleted ones")
	return command
}

func newOrgUpdate(p *cli.Program) *cobra.Command {
	var logPublic bool
	command := p.Takes(&cobra.Command{
		Use:   "update",
		Short: "Change the settings of an org",
		Long: `Changes the settings of an org.

With --log-public, everybody may read the files of the org's transparency log
without a token, so that auditors and witnesses need none. They see the number,
the type and the time of each event, and nothing else: no repo, commit or name.
What was read cannot be made private again. See docs/proof.md.`,
		Example: `  ledgerd org update acme --log-public
  ledgerd org update acme --log-public=false`,
		RunE: func(command *cobra.Command, args []string) error {
			change := ledger.OrgChange{LogPublic: cli.Changed(command, "log-public", &logPublic)}
			return p.WithOrgArg(command, args, &p.Global.Repo, func(ctx context.Context, c *cli.Connection, org string) error {
				changed, err := c.ChangeOrg(ctx, org, change)
				if err != nil {
					return err
				}
				return p.Confirm(changed, func() {
					readers := "readers with a token of " + changed.Name
					if changed.LogPublic {
						readers = "everybody"
					}
					terminal.Printf(p.Stdout, "The log of %s may be read by %s\n", changed.Name, readers)
				})
			})
		},
	}, "[ORG]")

	command.Flags().BoolVar(&logPublic, "log-public", false, "let everybody read the files of the transparency log")
	flagvalue.Require(command, "log-public")
	return command
}
