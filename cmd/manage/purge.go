package manage

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/cli"
)

func newRepoPurge(p *cli.Program) *cobra.Command {
	var confirmed string
	command := &cobra.Command{
		Use:   "purge ORG/~NUMBER",
		Short: "Make the deletion of a repo final",
		Long: `Purges a deleted repo, after asking for its name: it cannot be restored, and its
envelopes, the bodies of its events and its deliveries are deleted within
minutes. Its records, their digests and the leaves in the log stay, so that the
log can be verified. 'ledgerd repo list --deleted' lists the deleted repos.`,
		Example: `  ledgerd repo purge 'acme/~7'
  ledgerd repo purge 'acme/~7' --confirm '~7'`,
		Args: cli.Takes("ORG/~NUMBER"),
		RunE: func(command *cobra.Command, args []string) error {
			name, err := cli.ParseRepoName(args[0])
			if err != nil {
				return err
			}
			return p.With(command, func(ctx context.Context, c *cli.Connection) error {
				if err := p.ConfirmName("purge", "repo", name.Repo, confirmed); err != nil {
					return err
				}
				if err := c.PurgeRepo(ctx, name.Org, name.Repo); err != nil {
					return err
				}
				return p.Confirm(deletedName{name.String()}, func() { fmt.Fprintf(p.Stdout, "Purged %s\n", name) })
			})
		},
	}
	cli.ConfirmFlag(command, &confirmed)
	return command
}

func newOrgPurge(p *cli.Program) *cobra.Command {
	var confirmed string
	command := &cobra.Command{
		Use:   "purge ~NUMBER",
		Short: "Make the deletion of an org final",
		Long: `Purges a deleted org with all its repos, after asking for its name: it cannot be
restored, and the envelopes, the bodies of events and the deliveries of its repos
are deleted within minutes. The records, their digests and the log stay. Only the
administrator of the host may do this. 'ledgerd org list --deleted' lists the
deleted orgs.`,
		Example: "  ledgerd org purge '~3' --database ledger.db",
		Args:    cli.Takes("~NUMBER"),
		RunE: func(command *cobra.Command, args []string) error {
			return p.WithOrgArg(command, args, &p.Global.Repo, func(ctx context.Context, c *cli.Connection, org string) error {
				if err := p.ConfirmName("purge", "org", org, confirmed); err != nil {
					return err
				}
				if err := c.PurgeOrg(ctx, org); err != nil {
					return err
				}
				return p.Confirm(deletedName{org}, func() { fmt.Fprintf(p.Stdout, "Purged %s\n", org) })
			})
		},
	}
	cli.ConfirmFlag(command, &confirmed)
	return command
}
