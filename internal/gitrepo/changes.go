package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/internal/parallel"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// What the ledger takes of one commit at most.
const (
	maxAncestors = 500
	maxChanges   = 10_000
)

// Why a commit has no change record.
var (
	errMainline = errors.New("this clone has neither the branch of its remote's HEAD nor the repo's default branch, " +
		"and does not tell what the commit left; fetch that, or name it with --base")
	errShallow = errors.New("this clone is shallow and does not hold what the commit is based on (git fetch --unshallow)")
	errPartial = errors.New("this clone is partial and lacks folders of it")
	errPaths   = errors.New("it changes more than 10,000 paths")
	errPlaces  = errors.New("it changes more places than a server takes")
)

// addHistory adds what lies between the base and the commit: the commits, and
// what they change. A commit without a base changes all that it holds, unless
// the clone is shallow: then nobody here knows, and it comes without changes. So
// it does where a partial clone lacks the folders, and where there are too many.
// The gap that it returns says why. The commits are those that built does not
// hold: the base, or where that is of a branch that is not merged itself, the
// mainline.
func (g Repo) addHistory(
	ctx context.Context, objects *objectStore, sha, built string, r *ledger.Registration,
) (gap, err error) {
	from, since := r.Base, []string{"^" + built}
	if r.Base == "" {
		if objects.shallow {
			return errShallow, nil
		}
		from, since = objects.emptyTree(), nil
	}
	err = parallel.Do(
		func() error {
			args := append([]string{"rev-list", "--max-count=" + strconv.Itoa(maxAncestors), sha}, since...)
			out, err := g.Read(ctx, args...)
			r.Ancestors = strings.Fields(out)
			return err
		},
		func() (err error) { r.Changes, gap, err = g.changes(ctx, objects, from, sha); return err },
	)
	return gap, err
}

// changes returns the change record from one tree to another, or why there is
// none.
func (g Repo) changes(
	ctx context.Context, objects *objectStore, from, to string,
) (fitting []radar.Change, gap, err error) {
	changes, err := objects.changes(ctx, from, to)
	switch {
	case err != nil && g.isPartial(ctx):
		return nil, errPartial, nil
	case err != nil:
		return nil, nil, fmt.Errorf("the changes of %.12s: %w", to, err)
	case len(changes) > maxChanges:
		return nil, errPaths, nil
	}
	if fitting = fit(changes); fitting == nil {
		return nil, errPlaces, nil
	}
	if err := (ledger.Registration{Changes: fitting}).Check(); err != nil {
		return nil, fmt.Errorf("the ledger would refuse it: %w", err), nil
	}
	return fitting, nil, nil
}

func (g Repo) isPartial(ctx context.Context) bool {
	settings, err := g.line(ctx, "config", "--get-regexp", `^(extensions\.partialclone|remote\..*\.promisor)$`)
	return err == nil && settings != ""
}

// changes returns the change record from one tree to another, the whole of it
// but for what a partial clone lacks.
func (o *objectStore) changes(ctx context.Context, from, to string) ([]radar.Change, error) {
	changes, err := o.record(ctx, patchDiff(exactAndAlike, from, to))
	if _, refused := errors.AsType[*commandError](err); !refused || ctx.Err() != nil {
		return changes, err
	}
	if changes, partErr := o.partOf(ctx, from, to); partErr == nil {
		return changes, nil
	}
	return nil, err
}
