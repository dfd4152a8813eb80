// Package browse has the commands that list and show what is recorded.
package browse

import (
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
)

// Commands returns the commands of this package.
func Commands(p *cli.Program) []*cobra.Command {
	return []*cobra.Command{
		newSearch(p),
		newInsights(p),
		newAttestation(p),
		newViolation(p),
		newPredicate(p),
		newEvents(p),
		newEvidence(p),
		newVerify(p),
	}
}

func newVerify(p *cli.Program) *cobra.Command {
	return cli.Group("verify", "Verify what the ledger says against its transparency log",
		newVerifyAttestation(p), newVerifyEvent(p), newVerifyCommit(p), newVerifyRepo(p),
		newVerifyReceipt(p), newVerifyEvidence(p))
}
