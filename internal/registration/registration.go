// Package registration puts together what a commit is registered with: what git knows
// of it, and which commits in flight it already contains.
package registration

import (
	"context"
	"sync"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/parallel"
	"github.com/ledgerd/ledgerd/ledger"
)

// Read returns all that the ledger records of a commit of the git work tree
// in the current folder, to be registered in a repo.
func Read(ctx context.Context, c *client.Client, org, repo string, q gitrepo.Query) (gitrepo.Commit, error) {
	q.DefaultBranch = sync.OnceValues(func() (string, error) {
		r, err := c.Repo(ctx, org, repo)
		return r.DefaultBranch, err
	})
	git := gitrepo.Repo{Dir: "."}
	var commit gitrepo.Commit
	var tips []ledger.CommitSummary
	err := parallel.Do(
		func() (err error) { commit, err = git.ReadCommit(ctx, q); return err },
		func() (err error) { tips, err = tipsInFlight(ctx, c, org, repo); return err },
		func() error { _, err := q.DefaultBranch(); return err }, // git may ask for it
	)
	if err != nil {
		return commit, err
	}
	commit.Contained = git.Landed(ctx, commit, tips)
	return commit, nil
}

// maxTips is how many tips in flight are looked at: as many as a registration
// may name.
const maxTips = 10_000

func tipsInFlight(ctx context.Context, c *client.Client, org, repo string) ([]ledger.CommitSummary, error) {
	return client.Collect(c.Commits(ctx, org, repo, client.CommitFilter{InFlight: true}), maxTips)
}
