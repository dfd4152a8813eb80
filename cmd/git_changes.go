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
// it does where a partial clone lacks the folders.
func (g gitRepo) addHistory(ctx context.Context, objects *gitObjects, sha string, r *ledger.Registration) error {
	from, since := r.Base, []string{"^" + r.Base}
	if r.Base == "" {
		if objects.shallow {
			return nil
		}
		from, since = objects.emptyTree(), nil
	}
	return together(
		func() error {
			args := append([]string{"rev-list", "--max-count=" + strconv.Itoa(maxAncestors), sha}, since...)
			out, err := g.run(ctx, args...)
			r.Ancestors = strings.Fields(out)
			return err
		},
		func() error {
			changes, err := objects.changes(ctx, from, sha)
			if err != nil && !g.isPartial(ctx) {
				return fmt.Errorf("the changes of %s: %w", short(sha), err)
			}
			r.Changes = fit(changes)
			return nil
		},
	)
}

func (g gitRepo) isPartial(ctx context.Context) bool {
	settings, err := g.line(ctx, "config", "--get-regexp", `^(extensions\.partialclone|remote\..*\.promisor)$`)
	return err == nil && settings != ""
}
