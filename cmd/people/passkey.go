package people

import (
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/ledger/passkey"
)

func newPasskey(p *cli.Program) *cobra.Command {
	return cli.Group("passkey", "See and remove the passkeys of members", newPasskeyList(p), newPasskeyRemove(p))
}

func newPasskeyList(p *cli.Program) *cobra.Command {
	command := &cobra.Command{
		Short: "List the passkeys of an org",
		Long: `Lists the passkeys with which members confirm reviews. Members add passkeys in
the web interface, on the page Passkeys of the settings.`,
		Example: `  ledgerd passkey list --org acme
  ledgerd passkey list --org acme --member mem_01JD3X0V6Q8Z2M4N5P7R9T1W3Y`,
	}
	columns := []string{"ID", "WHO", "NAME", "FOR", "ADDED", "MEMBER"}
	return listsOwned(p, command, (*client.Client).Passkeys, columns, func(k passkey.Passkey) []any {
		return []any{k.ID, k.DN, k.Name, k.RPID, k.CreatedAt, k.Member}
	})
}

func newPasskeyRemove(p *cli.Program) *cobra.Command {
	return p.ForID(&cobra.Command{
		Use:   "remove",
		Short: "Remove a passkey",
		Long: `Removes a passkey, such as that of a lost phone: it confirms nothing any more.
What it has confirmed keeps counting.`,
		Example: "  ledgerd passkey remove pas_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --org acme",
	}, "Removed", "", (*client.Client).RemovePasskey)
}
