package manage

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

func newToken(p *cli.Program) *cobra.Command {
	return cli.Group("token", "Manage the API tokens of an org",
		newTokenCreate(p), newTokenList(p), newTokenRevoke(p), newTokenShow(p), newTokenExchange(p))
}

func newTokenCreate(p *cli.Program) *cobra.Command {
	var n ledger.NewToken
	command := p.ForOrg(&cobra.Command{
		Use:   "create",
		Short: "Create an API token and print it (shown only once)",
		Long: `Creates an API token for an org and prints only the token to standard output.
The ledger stores only its hash, so the token cannot be shown again.

Scopes:
  read      read everything in the org, except webhooks and administration
  write     also register commits and record attestations
  maintain  also manage policies and webhooks
  admin     also manage repos, identities, tokens and members

With --repo, the token is only for what is about one of these repos.`,
		Example: `  ledgerd token create --org acme --name ci --scope write --repo api
  ledgerd token create --org acme --name dashboard --scope read --expires 90d -o json`,
	}, func(ctx context.Context, c *cli.Connection, org string, _ []string) error {
		token, err := c.CreateToken(ctx, org, n)
		if err != nil {
			return err
		}
		terminal.Printf(p.Hints(), "Created %s token %q (%s). Copy it now: it won't be shown again.\n", token.Scope,
			token.Name,
			token.ID)
		return p.Print(token, func() { terminal.Printf(p.Stdout, "%s\n", token.Secret) })
	})
	flags := command.Flags()
	flags.StringVar(&n.Name, "name", "", "display `name`")
	flagvalue.Scope(command, &n.Scope, "permissions")
	flags.Var(flagvalue.Expiry(&n.ExpiresAt), "expires", "expiry: a duration such as 90d, or a date (default never)")
	flags.StringSliceVar(&n.Repos, "repo", nil, "`repos` that the token is for, comma-separated (default all)")
	flagvalue.NameField(command, "expires_at", "expires")
	flagvalue.NameField(command, "repos", "repo")
	flagvalue.Require(command, "name", "scope")
	return command
}

func newTokenList(p *cli.Program) *cobra.Command {
	return p.ForOrg(&cobra.Command{
		Use:     "list",
		Short:   "List the API tokens of an org, without their secrets",
		Example: "  ledgerd token list --org acme",
	}, func(ctx context.Context, c *cli.Connection, org string, _ []string) error {
		columns := []string{"ID", "NAME", "SCOPE", "CREATED", "LAST USED", "EXPIRES", "REVOKED", "REPOS", "CREATED BY",
			"RULE"}
		return cli.PrintList(p, c.Tokens(ctx, org), 0, columns, func(t ledger.Token) []any {
			return []any{t.ID, t.Name, t.Scope, t.CreatedAt, t.LastUsedAt, t.ExpiresAt, t.RevokedAt,
				terminal.OrDash(strings.Join(t.Repos, ",")), terminal.OrDash(t.CreatedBy), terminal.OrDash(t.Rule)}
		})
	})
}

func newTokenRevoke(p *cli.Program) *cobra.Command {
	command := p.ForOrg(&cobra.Command{
		Use:     "revoke",
		Short:   "Revoke an API token",
		Example: "  ledgerd token revoke tok_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --org acme",
	}, func(ctx context.Context, c *cli.Connection, org string, args []string) error {
		ask := func() (string, error) {
			return fmt.Sprintf("Revoke %s of %s?", describeToken(ctx, c, org, args[0]), org), nil
		}
		if err := p.Ask(ask); err != nil {
			return err
		}
		if err := c.RevokeToken(ctx, org, args[0]); err != nil {
			return err
		}
		return p.Confirm(revoked{ID: args[0], Org: org}, func() { terminal.Printf(p.Stdout, "Revoked %s\n", args[0]) })
	}, "ID")
	p.YesFlag(command)
	return command
}

// maxTokens limits how many tokens are searched for one to describe.
const maxTokens = 1000

// describeToken returns the name and scope of a token if they are found, or else its ID.
func describeToken(ctx context.Context, c *cli.Connection, org, id string) string {
	tokens, _ := client.Collect(c.Tokens(ctx, org), maxTokens)
	for _, t := range tokens {
		if t.ID == id {
			return fmt.Sprintf("the %s token %q", t.Scope, t.Name)
		}
	}
	return "the token " + id
}

// revoked is the JSON output of 'token revoke' and 'identity revoke'.
type revoked struct {
	ID              string      `json:"id"`
	Org             string      `json:"org"`
	RevokedAt       ledger.Time `json:"revoked_at,omitzero"`
	DistrustedSince ledger.Time `json:"distrusted_since,omitzero"`
}

func newTokenShow(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "Show the token in use and its scope",
		Example: "  ledgerd token show --server https://ledger.example",
		RunE: func(command *cobra.Command, _ []string) error {
			return p.With(command, func(ctx context.Context, c *cli.Connection) (err error) {
				token := ledger.Token{Name: "host", Scope: ledger.Host}
				if c.Local == nil {
					token, err = c.OwnToken(ctx)
				}
				if err != nil {
					return err
				}
				return p.Print(token, func() { display.Token(p.Stdout, token) })
			})
		},
	}
}
