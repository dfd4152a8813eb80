package cli

import (
	"context"
	"strings"

	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/ledger"
)

// A RepoName is the argument ORG/REPO.
type RepoName struct{ Org, Repo string }

func (n RepoName) String() string { return n.Org + "/" + n.Repo }

// ParseRepoName parses ORG/REPO.
func ParseRepoName(s string) (RepoName, error) {
	if org, repo, ok := cutRepo(s); ok {
		return RepoName{org, repo}, nil
	}
	return RepoName{}, Usagef("invalid repo %q: use ORG/REPO, such as acme/api", s)
}

// cutRepo splits ORG/REPO, and reports whether s has this form.
func cutRepo(s string) (org, repo string, ok bool) {
	org, repo, ok = strings.Cut(s, "/")
	return org, repo, ok && (ledger.CheckOrg(org) == nil || ledger.IsDeletedName(org)) &&
		(ledger.CheckRepo(repo) == nil || ledger.IsDeletedName(repo))
}

// At returns ORG/REPO@SHA for a commit of the repo, with an abbreviated sha.
func (n RepoName) At(sha string) string { return display.At(n.String(), sha) }

// MustExist returns an error if the repo does not exist or the caller has no access.
func (n RepoName) MustExist(ctx context.Context, c *Connection) error {
	_, err := c.Repo(ctx, n.Org, n.Repo)
	return err
}

func isRepoName(s string) bool {
	_, _, ok := cutRepo(s)
	return ok
}
