package gitrepo

import (
	"context"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/internal/parallel"
	"github.com/ledgerd/ledgerd/ledger"
)

// A Commit is a commit as git describes it.
type Commit struct {
	ledger.Registration
	SHA string
	// ChangesErr says why there is no change record. It is nil if there is one.
	ChangesErr error
	// merged reports whether the mainline contains the base.
	merged bool
}

// Extent describes how much the commit changes.
func (c Commit) Extent() string {
	switch {
	case c.Changes == nil:
		return "no change record"
	case len(c.Changes) == 1:
		return "1 changed path"
	}
	return fmt.Sprintf("%d changed paths", len(c.Changes))
}

// readCommit reads a commit from what the clone has.
func (g Repo) readCommit(ctx context.Context, q Query) (Commit, error) {
	sha, err := g.existingCommit(ctx, q.Rev)
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

// Describe returns the commit object of a revision or, if the ledger refuses that, its author,
// committer and message. It returns neither its place in the history nor its changes. The sha is
// empty if the repository does not have the commit.
func (g Repo) Describe(ctx context.Context, rev string) (c Commit, err error) {
	if c.SHA, err = g.commit(ctx, rev); err != nil || c.SHA == "" {
		return Commit{}, err
	}
	c.Registration, _, err = g.metadata(ctx, c.SHA)
	return c, err
}

// registration reads what the ledger records of a commit, except its branches. If
// the base is unknown, it reads no changes either: those of the last commit would
// be mistaken for those of the whole branch.
func (g Repo) registration(ctx context.Context, sha string, q Query) (c Commit, err error) {
	var m mainline
	var objects *objectStore
	var parents []string
	err = parallel.Do(
		func() (err error) { c.Registration, parents, err = g.metadata(ctx, sha); return err },
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
	if c.Object == nil {
		c.Parents = parents
	}
	if m.forkRef == "" && len(parents) > 0 {
		c.ChangesErr = errMainline
		return c, nil
	}

	if c.Base, err = g.base(ctx, sha, parents, m.forkRef); err != nil {
		return c, err
	}
	c.merged = c.Base != "" && (m.forkRef == m.trunk || g.contains(ctx, m.trunk, c.Base))
	exclude := c.Base
	if !c.merged && m.trunk != "" {
		exclude = m.trunk
	}
	c.ChangesErr, err = g.addHistory(ctx, objects, sha, exclude, &c.Registration)
	return c, err
}
