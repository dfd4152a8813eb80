package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// A repoName is ORG/REPO, as commands take it.
type repoName struct{ org, repo string }

func (n repoName) String() string { return n.org + "/" + n.repo }

func parseRepoName(s string) (repoName, error) {
	org, repo, ok := strings.Cut(s, "/")
	if !ok || ledger.CheckOrg(org) != nil || ledger.CheckRepo(repo) != nil {
		return repoName{}, usagef("%q does not name a repo: write ORG/REPO, such as acme/api", s)
	}
	return repoName{org, repo}, nil
}

// withRepo runs do on a connection and the repo that the first argument names.
func (p *program) withRepo(command *cobra.Command, args []string, do func(context.Context, *connection, repoName) error) error {
	name, err := parseRepoName(args[0])
	if err != nil {
		return err
	}
	return p.with(command, func(ctx context.Context, c *connection) error { return do(ctx, c, name) })
}

// orgFlag defines --org.
func orgFlag(command *cobra.Command, value *string) {
	command.Flags().StringVar(value, "org", "", "`ORG`; with a token, by default the token's own")
}

// withOrg runs do on a connection and the org that --org names, or else the
// org of the caller's token.
func (p *program) withOrg(command *cobra.Command, org string, do func(ctx context.Context, c *connection, org string) error) error {
	return p.with(command, func(ctx context.Context, c *connection) error {
		if org == "" && c.local != nil {
			return usagef("--org is missing")
		}
		if org == "" {
			own, err := c.OwnToken(ctx)
			if err != nil {
				return err
			}
			org = own.Org
		}
		if ledger.CheckOrg(org) != nil {
			return usagef("--org %q cannot name an org", org)
		}
		return do(ctx, c, org)
	})
}

// at names a commit of the repo.
func (n repoName) at(sha string) string { return n.String() + "@" + terminal.Short(sha) }

// mustExist reports why the repo cannot be used, if so.
func (n repoName) mustExist(ctx context.Context, c *connection) error {
	_, err := c.Repo(ctx, n.org, n.repo)
	return err
}
