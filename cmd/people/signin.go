package people

import (
	"context"
	"iter"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/ledger"
)

func newSignIn(p *cli.Program) *cobra.Command {
	return cli.Group("sign-in", "See who is signed in, and end sign-ins", newSignInList(p), newSignInEnd(p))
}

func newSignInList(p *cli.Program) *cobra.Command {
	command := &cobra.Command{
		Short: "List the sign-ins of an org that have not ended",
		Example: `  ledgerd sign-in list --org acme
  ledgerd sign-in list --org acme --member mem_01JD3X0V6Q8Z2M4N5P7R9T1W3Y`,
	}
	columns := []string{"ID", "WHO", "SCOPE", "SIGNED IN", "EXPIRES", "MEMBER"}
	return listsOwned(p, command, (*client.Client).SignIns, columns, func(t ledger.Token) []any {
		return []any{t.ID, t.DN, t.Scope, t.CreatedAt, t.ExpiresAt, t.Member}
	})
}

// listsOwned makes a command one that lists what members own.
func listsOwned[T any](
	p *cli.Program, command *cobra.Command,
	list func(c *client.Client, ctx context.Context, org, owner string) iter.Seq2[T, error],
	columns []string, row func(T) []any,
) *cobra.Command {
	var owner string
	command.Use = "list"
	p.ForOrg(command, func(ctx context.Context, c *cli.Connection, org string, _ []string) error {
		return cli.PrintList(p, list(c.Client, ctx, org, owner), 0, columns, row)
	})
	command.Flags().StringVar(&owner, "member", "", "only those of the member with this `ID`")
	return command
}

func newSignInEnd(p *cli.Program) *cobra.Command {
	return p.ForID(&cobra.Command{
		Use:   "end",
		Short: "End a sign-in",
		Long: `Ends a sign-in: its pages and streams end within 15 seconds. The person can sign
in again; to prevent that, see 'ledgerd member remove'.`,
		Example: "  ledgerd sign-in end tok_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --org acme",
	}, "Ended", "", (*client.Client).EndSignIn)
}
