package manage

import (
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
)

func newRepoPurge(p *cli.Program) *cobra.Command {
	return newRepoEnd(p, "purge", "Purged", (*client.Client).PurgeRepo, p.Takes(&cobra.Command{
		Use:   "purge",
		Short: "Make the deletion of a repo final",
		Long: `Purges a deleted repo, after asking for its name: it cannot be restored, and its
envelopes, the bodies of its events and its deliveries are deleted within
minutes. Its records, their digests and the leaves in the log stay, so that the
log can be verified. 'ledgerd repo list --deleted' lists the deleted repos.`,
		Example: `  ledgerd repo purge 'acme/~7'
  ledgerd repo purge 'acme/~7' --confirm '~7'`,
	}, "ORG/~NUMBER"))
}

func newOrgPurge(p *cli.Program) *cobra.Command {
	return newOrgEnd(p, "purge", "Purged", (*client.Client).PurgeOrg, p.Takes(&cobra.Command{
		Use:   "purge",
		Short: "Make the deletion of an org final",
		Long: `Purges a deleted org with all its repos, after asking for its name: it cannot be
restored, and the envelopes, the bodies of events and the deliveries of its repos
are deleted within minutes. The records, their digests and the log stay. Only the
administrator of the host may do this. 'ledgerd org list --deleted' lists the
deleted orgs.`,
		Example: "  ledgerd org purge '~3' --database ledger.db",
	}, "~NUMBER"))
}
