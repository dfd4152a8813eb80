package gitrepo

import (
	"context"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/internal/parallel"
	"github.com/ledgerd/ledgerd/ledger"
)

// A Commit is what git alone knows of a commit.
type Commit struct {
	ledger.Registration
	SHA string
	// Gap says why there is no change record; nil if there is one.
	Gap error
	// merged tells that the base is on the mainline, and so is what it holds.
	merged bool
}

// Extent describes how much the commit changes.
func (c Commit) Extent() string {
	switch {
	case c.Changes == nil:
		return "without a change record"
	case len(c.Changes) == 1:
		return "1 changed path"
	}
	return fmt.Sprintf("%d changed paths", len(c.Changes))
}

// ReadCommit returns what git alone knows of a commit.
func (g Repo) ReadCommit(ctx context.Context, q Query) (Commit, error) {
	sha, err := g.mustCommit(ctx, q.Rev)
	if err != nil {
		return Commit{}, err
	}
	var c Commit
	branch := q.Branch
	err = parallel.Do(
		func() (err error) { c, err = g.registration(ctx, sha, q); return err },
		func() (err error) {
			if branch == "" {
				branch, err = g.branch(ctx, q.Rev, sha)
			}
			return err
		},
	)
	c.Branch, c.Target = branch, q.Target
	return c, err
}

// registration reads what the ledger wants to know of a commit, but for its
// branches. Where nobody can tell its base, what it changes is not known either:
// its last step would pass for the whole of its branch.
func (g Repo) registration(ctx context.Context, sha string, q Query) (c Commit, err error) {
	var m mainline
	var objects *objectStore
	err = parallel.Do(
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
	c.SHA = sha
	if m.left == "" && len(c.Parents) > 0 {
		c.Gap = errMainline
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
	c.Gap, err = g.addHistory(ctx, objects, sha, built, &c.Registration)
	return c, err
}
