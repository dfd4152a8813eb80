package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ledgerd/ledgerd/internal/parallel"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// The ledger's limits for one commit.
const (
	maxAncestors = 500
	maxChanges   = 10_000
)

// ErrDeepen is the cause of errors about history that a shallow clone lacks: what to do.
var ErrDeepen = errors.New("fetch the missing history, for example with 'git fetch --unshallow'")

// errPartialMerge is the cause of errors about files of commits that a partial clone lacks.
var errPartialMerge = errors.New("this clone is partial and may lack files of the commits (clone without --filter)")

// Why a commit has no change record.
var (
	errMainline = errors.New("this clone has neither its remote's HEAD branch nor the repo's default branch, " +
		"so the commit's base is unknown; fetch the default branch or pass --base")
	errShallow = errors.New("this clone is shallow and lacks the commit's base (pass --fetch, or run " +
		"git fetch --unshallow)")
	errPartial      = errors.New("this clone is partial and lacks folders of the commit")
	errTooManyPaths = errors.New("the commit changes more than 10,000 paths")
	errTooLarge     = errors.New("the change record is too large for a server")
)

// addHistory adds to r the ancestors of the commit back to the base, and the changes
// since. A commit without a base changes all its files. There is no change record if
// the clone is too shallow to contain the base, if a partial clone lacks folders, or if
// the record is too large; reason then says why. The ancestors are those that exclude
// does not contain. That is the base or, if the base is on an unmerged branch, the
// mainline.
func (g Repo) addHistory(
	ctx context.Context, objects *objectStore, sha, exclude string, r *ledger.Registration,
) (reason, err error) {
	from, since := r.Base, []string{"^" + exclude}
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
		func() (err error) { r.Changes, reason, err = g.changes(ctx, objects, from, sha); return err },
	)
	return reason, err
}

// changes returns the change record from one tree to another. Without
// a record, reason says why.
func (g Repo) changes(
	ctx context.Context, objects *objectStore, from, to string,
) (record []radar.Change, reason, err error) {
	changes, err := objects.changes(ctx, from, to)
	switch {
	case err != nil && g.isPartial(ctx):
		return nil, errPartial, nil
	case err != nil:
		return nil, nil, fmt.Errorf("cannot read the changes of %.12s: %w", to, err)
	case len(changes) > maxChanges:
		return nil, errTooManyPaths, nil
	}

	if record = fit(changes); record == nil {
		return nil, errTooLarge, nil
	}
	if err := (ledger.Registration{Changes: record}).Check(); err != nil {
		return nil, fmt.Errorf("the server would reject the change record: %w", err), nil
	}
	return record, nil, nil
}

func (g Repo) isPartial(ctx context.Context) bool {
	settings, err := g.line(ctx, "config", "--get-regexp", `^(extensions\.partialclone|remote\..*\.promisor)$`)
	return err == nil && settings != ""
}

// changes returns the change record from one tree to another. In a partial clone it
// lacks the hunks of files whose content is missing.
func (o *objectStore) changes(ctx context.Context, from, to string) ([]radar.Change, error) {
	changes, err := o.record(ctx, patchDiff(exactAndSimilar, from, to))
	if _, failed := errors.AsType[*commandError](err); !failed || ctx.Err() != nil {
		return changes, err
	}
	if changes, partialErr := o.partialChanges(ctx, from, to); partialErr == nil {
		return changes, nil
	}
	return nil, err
}

// ChangedPaths returns the paths in which a commit differs from another one, the base, with the old and the new ones of
// renames. It reads no content of files.
func (g Repo) ChangedPaths(ctx context.Context, base, commit string) (paths []string, err error) {
	out, err := g.Read(ctx, "diff-tree", "-r", "-z", "--name-only", "--no-renames", base, commit)
	if err != nil {
		return nil, fmt.Errorf("compare %.12s with %.12s: %w", commit, base, err)
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if !utf8.ValidString(path) {
			return nil, fmt.Errorf("%.12s changes the path %q, which is not UTF-8", commit, path)
		}
		if path != "" {
			paths = append(paths, path)
		}
	}
	return paths, nil
}
