package cmd

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// What the ledger takes of one commit at most.
const (
	maxAncestors = 500
	maxChanges   = 10_000
	maxMessage   = 64 << 10 // bytes
)

// addHistory adds what lies between the base and the commit: the commits, and
// what they change. A commit without a base changes all that it holds, unless
// the clone is shallow: then nobody here knows, and it comes without changes. So
// it does where a partial clone lacks the folders, and where there are too many.
// The gap that it returns says why. The commits are those that built does not
// hold: the base, or where that is of a branch that is not merged itself, the
// mainline.
func (g gitRepo) addHistory(ctx context.Context, objects *gitObjects, sha, built string, r *ledger.Registration) (gap string, err error) {
	from, since := r.Base, []string{"^" + built}
	if r.Base == "" {
		if objects.shallow {
			return gapShallow, nil
		}
		from, since = objects.emptyTree(), nil
	}
	err = together(
		func() error {
			args := append([]string{"rev-list", "--max-count=" + strconv.Itoa(maxAncestors), sha}, since...)
			out, err := g.run(ctx, args...)
			r.Ancestors = strings.Fields(out)
			return err
		},
		func() (err error) { r.Changes, gap, err = g.changes(ctx, objects, from, sha); return err },
	)
	return gap, err
}

// changes returns the change record from one tree to another, or why there is
// none.
func (g gitRepo) changes(ctx context.Context, objects *gitObjects, from, to string) (fitting []ledger.Change, gap string, err error) {
	changes, err := objects.changes(ctx, from, to)
	switch {
	case err != nil && g.isPartial(ctx):
		return nil, gapPartial, nil
	case err != nil:
		return nil, "", fmt.Errorf("the changes of %s: %w", short(to), err)
	case len(changes) > maxChanges:
		return nil, gapPaths, nil
	}
	if fitting = fit(changes); fitting == nil {
		return nil, gapPlaces, nil
	}
	if err := (ledger.Registration{Changes: fitting}).Check(); err != nil {
		return nil, "the ledger would refuse it: " + describe(err), nil
	}
	return fitting, "", nil
}

func (g gitRepo) isPartial(ctx context.Context) bool {
	settings, err := g.line(ctx, "config", "--get-regexp", `^(extensions\.partialclone|remote\..*\.promisor)$`)
	return err == nil && settings != ""
}
