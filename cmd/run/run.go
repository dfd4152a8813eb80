// Package run has the commands that run a server, and those about the program itself.
package run

import (
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
)

// Commands returns the commands that run a server.
func Commands(p *cli.Program) []*cobra.Command {
	return []*cobra.Command{
		newServe(p),
		newDemo(p),
	}
}

// Tools returns the commands about the program itself.
func Tools(p *cli.Program) []*cobra.Command {
	return []*cobra.Command{
		newConfig(p),
		newBackup(p),
		newRestore(p),
		newCopy(p),
		newCheck(p),
		newDoctor(p),
		newReady(p),
		newLog(p),
		newVersion(p),
		newUpgrade(p),
	}
}
