package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/display"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// A RepoName is the argument ORG/REPO.
type RepoName struct{ Org, Repo string }

func (n RepoName) String() string { return n.Org + "/" + n.Repo }

// ParseRepoName parses ORG/REPO.
func ParseRepoName(s string) (RepoName, error) {
	org, repo, ok := strings.Cut(s, "/")
	if !ok || ledger.CheckOrg(org) != nil || ledger.CheckRepo(repo) != nil {
		return RepoName{}, Usagef("invalid repo %q: use ORG/REPO, such as acme/api", s)
	}
	return RepoName{org, repo}, nil
}

// WithRepo runs do with a connection and the repo of the first argument.
func (p *Program) WithRepo(
	command *cobra.Command, args []string, do func(context.Context, *Connection, RepoName) error,
) error {
	name, err := ParseRepoName(args[0])
	if err != nil {
		return err
	}
	return p.With(command, func(ctx context.Context, c *Connection) error { return do(ctx, c, name) })
}

// OrgFlag defines --org.
func OrgFlag(command *cobra.Command, value *string) {
	command.Flags().StringVar(value, "org", "", "`org` (default: the token's org)")
}

// WithOrg runs do with a connection and the org of --org, or by default the org of
// the caller's token.
func (p *Program) WithOrg(
	command *cobra.Command, org string, do func(ctx context.Context, c *Connection, org string) error,
) error {
	return p.With(command, func(ctx context.Context, c *Connection) error {
		if org == "" && c.Local != nil {
			return Usagef("--org is required")
		}
		if org == "" {
			own, err := c.OwnToken(ctx)
			if err != nil {
				return err
			}
			org = own.Org
		}
		if ledger.CheckOrg(org) != nil {
			return Usagef("invalid --org %q", org)
		}
		return do(ctx, c, org)
	})
}

// At returns ORG/REPO@SHA for a commit of the repo, with an abbreviated sha.
func (n RepoName) At(sha string) string { return display.At(n.String(), sha) }

// MustExist returns an error if the repo does not exist or the caller has no access.
func (n RepoName) MustExist(ctx context.Context, c *Connection) error {
	_, err := c.Repo(ctx, n.Org, n.Repo)
	return err
}

// OnWebhook runs do with a connection and the webhook of the first two arguments.
func (p *Program) OnWebhook(
	command *cobra.Command, args []string, do func(ctx context.Context, c *Connection, name RepoName, id string) error,
) error {
	return p.WithRepo(command, args, func(ctx context.Context, c *Connection, name RepoName) error {
		err := do(ctx, c, name, args[1])
		if client.CodeOf(err) == ledger.CodeWebhookInactive {
			err = fmt.Errorf("%w (run 'ledgerd webhook update %s %s --active')", err, name, terminal.Printable(args[1]))
		}
		return err
	})
}
