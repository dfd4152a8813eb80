// Package manage has the commands that set up a ledger: orgs, repos, signers, policies,
// tokens and webhooks, and those that list who did.
package manage

import (
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
)

// Commands returns the commands of this package.
func Commands(p *cli.Program) []*cobra.Command {
	return []*cobra.Command{
		newOrg(p),
		newRepo(p),
		newToken(p),
		newIdentity(p),
		newTrustedRoot(p),
		newIssuer(p),
		newExchangeRule(p),
		newPolicy(p),
		newWebhook(p),
		newAudit(p),
		newKeygen(p),
	}
}
