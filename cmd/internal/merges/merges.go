// Package merges finds with git which commits of a mainline and of branches are clean merges of other commits, so
// that evidence about these can carry.
package merges

import (
	"context"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
)

// Find searches for merges since the last time. It needs no work tree. When the context ends, it returns what it
// has found until then, and the rest is undecided.
func Find(ctx context.Context, g gitrepo.Repo, q Query) (r Result, err error) {
	checker, err := g.MergeChecker(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, checker.Close()) }()

	f := finder{MergeChecker: checker, query: q, tried: make(map[claimKey]bool),
		sources: make(map[string][]string)}
	err = f.find(ctx, g)
	if ctx.Err() != nil {
		f.undecided(fmt.Errorf("the search for merges took too long: %w", context.Cause(ctx)))
		err = nil
	}
	return f.Result, err
}

func (f *finder) find(ctx context.Context, g gitrepo.Repo) error {
	path, err := f.newCommits(ctx)
	if err != nil {
		return err
	}
	if err := f.readHeads(ctx, g); err != nil {
		return err
	}
	if err := f.explainPath(ctx, path); err != nil {
		return err
	}
	if err := f.explainQueues(ctx, g); err != nil {
		return err
	}
	return f.explainHeads(ctx)
}
