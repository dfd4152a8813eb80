// Package registration collects the data for registering a commit: its record from
// git, and the commits in flight that it already contains.
package registration

import (
	"context"
	"sync"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/parallel"
	"github.com/ledgerd/ledgerd/ledger"
)

// Read returns the data to register a commit of the git work tree in the current
// folder in a repo.
func Read(ctx context.Context, c *client.Client, org, repo string, q gitrepo.Query) (gitrepo.Commit, error) {
	q.DefaultBranch = defaultBranch(ctx, c, org, repo)
	git := gitrepo.Repo{Dir: "."}
	var commit gitrepo.Commit
	var tips []ledger.CommitSummary
	err := parallel.Do(
		func() (err error) { commit, err = git.ReadCommit(ctx, q); return err },
		func() (err error) { tips, err = tipsInFlight(ctx, c, org, repo); return err },
		func() error { _, err := q.DefaultBranch(); return err }, // ReadCommit may need it
	)
	if err != nil {
		return commit, err
	}
	commit.Contained = git.Landed(ctx, commit, tips)
	return commit, nil
}

// defaultBranch returns a function that asks for the default branch of a repo, once.
func defaultBranch(ctx context.Context, c *client.Client, org, repo string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		r, err := c.Repo(ctx, org, repo)
		return r.DefaultBranch, err
	})
}

// maxTips is the maximum number of tips in flight to check: a registration may name
// at most this many.
const maxTips = 10_000

func tipsInFlight(ctx context.Context, c *client.Client, org, repo string) ([]ledger.CommitSummary, error) {
	return client.Collect(c.Commits(ctx, org, repo, client.CommitFilter{InFlight: true}), maxTips)
}

// Describe registers a commit with its object in the git work tree in the current folder, which says who wrote it. It
// adds no branch and no changes, so the radar ignores it. If there is no such commit here, it does nothing and returns
// nil.
func Describe(ctx context.Context, c *client.Client, org, repo, sha string) (registered *ledger.Commit, err error) {
	git := gitrepo.Repo{Dir: "."}
	if exists, err := git.Exists(ctx); err != nil || !exists {
		return nil, err
	}
	local, err := git.Describe(ctx, sha)
	if err != nil || local.SHA == "" {
		return nil, err
	}
	commit, _, err := c.Register(ctx, org, repo, local.SHA, local.Registration)
	if err != nil {
		return nil, err
	}
	return &commit, nil
}
