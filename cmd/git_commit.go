package cmd

import (
	"context"
	"errors"

	"github.com/ledgerd/ledgerd/ledger"
)

// A commitQuery names a commit of a git repository, and what its repository need
// not tell of it.
type commitQuery struct {
	rev string
	// branch of the commit; empty for the one that it stands on.
	branch string
	// target is the branch that the commit is meant for, empty where nobody says.
	target string
	// base is a revision of the mainline that it left; empty for the usual one.
	base string
	// defaultBranch returns the branch that the ledger takes for the mainline; nil
	// for main.
	defaultBranch func() (string, error)
}

// A localCommit is what git alone knows of a commit.
type localCommit struct {
	ledger.Registration
	sha string
	// gap says why there is no change record; empty where there is one.
	gap string
	// merged tells that the base is on the mainline, and so is what it holds.
	merged bool
}

// Why a commit has no change record.
const (
	gapMainline = "this clone has neither the branch of its remote's HEAD nor the repo's default branch, and does not tell what the commit left; fetch that, or name it with --base"
	gapShallow  = "this clone is shallow and does not hold what the commit is based on (git fetch --unshallow)"
	gapPartial  = "this clone is partial and lacks folders of it"
	gapPaths    = "it changes more than 10,000 paths"
	gapPlaces   = "it changes more places than a server takes"
)

// read returns what git alone knows of a commit.
func (g gitRepo) read(ctx context.Context, q commitQuery) (localCommit, error) {
	sha, err := g.mustCommit(ctx, q.rev)
	if err != nil {
		return localCommit{}, err
	}
	var c localCommit
	branch := q.branch
	err = together(
		func() (err error) { c, err = g.registration(ctx, sha, q); return err },
		func() (err error) {
			if branch == "" {
				branch, err = g.branch(ctx, q.rev, sha)
			}
			return err
		},
	)
	c.Branch, c.Target = branch, q.target
	return c, err
}

// registration reads what the ledger wants to know of a commit, but for its
// branches. Where nobody can tell its base, what it changes is not known either:
// its last step would pass for the whole of its branch.
func (g gitRepo) registration(ctx context.Context, sha string, q commitQuery) (c localCommit, err error) {
	var m mainline
	var objects *gitObjects
	err = together(
		func() (err error) { c.Registration, err = g.told(ctx, sha); return err },
		func() (err error) { m, err = g.mainline(ctx, sha, q); return err },
		func() (err error) { objects, err = g.objects(ctx); return err },
	)
	if objects != nil {
		defer func() { err = errors.Join(err, objects.close()) }()
	}
	if err != nil {
		return c, err
	}
	c.sha = sha
	if m.left == "" && len(c.Parents) > 0 {
		c.gap = gapMainline
		return c, nil
	}
	if c.Base, err = g.base(ctx, sha, c.Parents, m.left); err != nil {
		return c, err
	}
	c.merged = c.Base != "" && (m.left == m.trunk || g.holds(ctx, m.trunk, c.Base))
	built := c.Base
	if !c.merged && m.trunk != "" {
		built = m.trunk
	}
	c.gap, err = g.addHistory(ctx, objects, sha, built, &c.Registration)
	return c, err
}
