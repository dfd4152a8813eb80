// Package people has the commands about the people of an org, their sign-ins and their passkeys.
package people

import (
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
)

// Commands returns the commands of this package.
func Commands(p *cli.Program) []*cobra.Command {
	return []*cobra.Command{newMember(p), newPerson(p), newSignIn(p), newPasskey(p)}
}
