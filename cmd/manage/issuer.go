package manage

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger/exchange"
)

func newIssuer(p *cli.Program) *cobra.Command {
	return cli.Group("issuer", "Manage the OpenID Connect issuers whose tokens an org accepts",
		newIssuerAdd(p), newIssuerList(p), newIssuerRemove(p))
}

func newIssuerAdd(p *cli.Program) *cobra.Command {
	var org, jwks string
	command := p.Takes(&cobra.Command{
		Use:   "add",
		Short: "Accept tokens of an issuer",
		Long: `Adds an OpenID Connect issuer to an org. URL is the claim iss of its tokens:

  GitHub Actions   https://token.actions.githubusercontent.com
  GitLab           https://gitlab.com, or the URL of your own
  Forgejo          https://FORGEJO/api/actions

The server reads the keys of the issuer itself, at most once a minute. If it
cannot reach the issuer, give it the keys with --jwks. Nobody gets an API token
before you create a rule with 'ledgerd exchange-rule create'.`,
		Example: `  ledgerd issuer add https://token.actions.githubusercontent.com --org acme
  ledgerd issuer add https://gitlab.internal --org acme --jwks keys.json`,
		RunE: func(command *cobra.Command, args []string) error {
			n := exchange.NewIssuer{URL: args[0]}
			if jwks != "" {
				text, err := p.ReadFile(jwks)
				if err != nil {
					return err
				}
				n.JWKS = string(text)
			}
			return p.WithOrg(command, org, func(ctx context.Context, c *cli.Connection, org string) error {
				added, err := c.AddIssuer(ctx, org, n)
				if err != nil {
					return err
				}
				return p.Confirm(added, func() {
					terminal.Printf(p.Stdout, "Added issuer %s to %s (%s)\n", terminal.Printable(added.URL), added.Org, added.ID)
				})
			})
		},
	}, "URL")
	cli.OrgFlag(command, &org)
	command.Flags().StringVar(&jwks, "jwks", "", "JSON Web Key Set of the issuer, a `file` (default: ask the issuer)")
	flagvalue.NameField(command, "jwks", "jwks")
	return command
}

func newIssuerList(p *cli.Program) *cobra.Command {
	return p.ForOrg(&cobra.Command{
		Use:     "list",
		Short:   "List the issuers of an org",
		Example: "  ledgerd issuer list --org acme",
	}, func(ctx context.Context, c *cli.Connection, org string, _ []string) error {
		columns := []string{"ID", "URL", "KEYS", "CREATED"}
		return cli.PrintList(p, c.Issuers(ctx, org), 0, columns, func(i exchange.Issuer) []any {
			keys := "from the issuer"
			if i.JWKS != "" {
				keys = "given"
			}
			return []any{i.ID, i.URL, keys, i.CreatedAt}
		})
	})
}

func newIssuerRemove(p *cli.Program) *cobra.Command {
	return p.ForID(&cobra.Command{
		Use:     "remove",
		Short:   "Remove an issuer with its exchange rules, and revoke their API tokens",
		Example: "  ledgerd issuer remove iss_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --org acme",
	}, "Removed",
		"Remove the issuer %s of %s, with its exchange rules and their API tokens?", (*client.Client).RemoveIssuer)
}
