// Package start has the commands with which a person begins: they log in to a server, and
// set up a git repository.
package start

import (
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
)

// Commands returns the commands of this package.
func Commands(p *cli.Program) []*cobra.Command {
	return []*cobra.Command{
		newInit(p),
		newLogin(p),
		newLogout(p),
		newContext(p),
		newWhoami(p),
	}
}
