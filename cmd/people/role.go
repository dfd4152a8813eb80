package people

import (
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/ledger/member"
)

// roleFlag defines --role.
func roleFlag(command *cobra.Command, value *member.Role) {
	var roles []string
	for _, r := range member.Roles() {
		roles = append(roles, r.String())
	}
	command.Flags().Var(&flagvalue.Parsed[member.Role]{Value: value, Kind: "role", Parse: member.ParseRole}, "role",
		flagvalue.OneOf(roles))
	flagvalue.Complete(command, "role", roles...)
}
