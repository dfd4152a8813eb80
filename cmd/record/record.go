// Package record has the commands of CI jobs and people about a commit: they record what
// happened to it, and check its state and its overlaps.
package record

import (
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
)

// Commands returns the commands of this package.
func Commands(p *cli.Program) []*cobra.Command {
	return []*cobra.Command{
		newCommit(p),
		newAttest(p),
		newDeploy(p),
		newRollback(p),
		newEnvironment(p),
		newReview(p),
		newException(p),
		newGate(p),
		newReceipt(p),
		newRadar(p),
		newCI(p),
	}
}
