// Package run has the commands that run a server, and those about the program itself.
package run

import (
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/cli"
)

// Commands returns the commands of this package.
func Commands(p *cli.Program, ledgerd Main) []*cobra.Command {
	return []*cobra.Command{
		newServe(p),
		newDemo(p),
		newConfig(p),
		newBench(p, ledgerd),
		newVersion(p),
	}
}
