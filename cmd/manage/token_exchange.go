package manage

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/ci/idtoken"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// A tokenExchange has the flags of 'token exchange'.
type tokenExchange struct {
	org, file, audience string
	scope               ledger.Scope
}

func newTokenExchange(p *cli.Program) *cobra.Command {
	var x tokenExchange
	command := &cobra.Command{
		Use:   "exchange",
		Short: "Exchange the OpenID Connect token of a CI job for an API token, and print it",
		Long: `Exchanges the OpenID Connect token of a CI job for an API token, by a rule of the
org, and prints only the API token to standard output. No secret is needed.

The token of the job is requested from GitHub Actions or Forgejo Actions, or
read from the variable LEDGERD_ID_TOKEN, as on GitLab. --id-token reads it from a
file.

EXIT STATUS
  0  exchanged
  1  refused, or the server cannot be reached
  2  usage error`,
		Example: `  ledgerd token exchange --org acme --server https://ledger.example.com
  ledgerd token exchange --org acme --id-token job.jwt --scope read -o json`,
		RunE: func(command *cobra.Command, _ []string) error { return x.run(p, command) },
	}
	flags := command.Flags()
	flags.StringVar(&x.org, "org", "", "`org` whose API token is needed")
	flags.StringVar(&x.file, "id-token", "", "`file` with the token of the job; - for standard input")
	flags.StringVar(&x.audience, "audience", "", "`URL` of the org below the server's base_url (default: below --server)")
	flagvalue.Scope(command, &x.scope, "permissions (default: those of the rule)")
	flagvalue.Require(command, "org")
	return command
}

func (x *tokenExchange) run(p *cli.Program, command *cobra.Command) error {
	p.NeedNoToken()
	l, err := p.Locate(command)
	if err != nil {
		return err
	}
	if l.URL == "" {
		return cli.Usagef("token exchange needs a server: set LEDGERD_URL or --server")
	}
	if x.audience == "" {
		x.audience = strings.TrimRight(l.URL, "/") + "/v1/orgs/" + x.org
	}
	token, err := x.token(command.Context(), p)
	if err != nil {
		return err
	}

	return p.With(command, func(ctx context.Context, c *cli.Connection) error {
		r, err := c.ExchangeToken(ctx, x.org, token, x.scope)
		if err != nil {
			return err
		}
		terminal.Printf(p.Hints(), "Exchanged for a %s token of %s by %s, for %s, until %s.\n", r.Scope,
			strings.Join(r.Token.Repos, ","), r.Token.Rule, x.org, r.Token.ExpiresAt)
		return p.Print(r, func() { terminal.Printf(p.Stdout, "%s\n", r.AccessToken) })
	})
}

// token returns the token of the job.
func (x *tokenExchange) token(ctx context.Context, p *cli.Program) (string, error) {
	if x.file != "" {
		text, err := p.ReadFile(x.file)
		return strings.TrimSpace(string(text)), err
	}
	source, err := idtoken.Find(os.Getenv, x.audience)
	if err != nil {
		return "", err
	}
	return source.Token(ctx, x.audience)
}
