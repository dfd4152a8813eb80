// Package merges finds with git which commits of a mainline and of branches are clean merges of other commits, so
// that evidence about these can carry.
package merges

import (
	"context"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
)

// Find searches for merges since the last time. It needs no work tree. At the deadline of the context, it returns what
// it has found until then, and the rest is undecided. gitrepo.IsIncomplete reports that an error is due to history that
// the clone lacks.
func Find(ctx context.Context, g gitrepo.Repo, q Query) (r Result, err error) {
	checker, err := g.MergeChecker(ctx)
	if err == nil {
		f := newFinder(checker, q)
		err = errors.Join(f.find(ctx, g), checker.Close())
		r = f.Result
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		r.Undecided = append(r.Undecided, fmt.Errorf("the search for merges took too long: %w", context.Cause(ctx)))
		err = nil
	}
	return r, err
}

func (f *finder) find(ctx context.Context, g gitrepo.Repo) error {
	if err := f.readNamed(ctx, g); err != nil {
		return err
	}
	path, err := f.readMainline(ctx)
	if err != nil {
		return err
	}
	if err := f.readHeads(ctx); err != nil {
		return err
	}
	if err := f.explainPath(ctx, path); err != nil {
		return err
	}
	if err := f.explainQueues(ctx, g); err != nil {
		return err
	}
	if err := f.explainHeads(ctx); err != nil {
		return err
	}
	return f.addHeads(ctx)
}
