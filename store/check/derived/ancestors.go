package derived

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// ancestors checks the objects of the commits of a repo that are not registered, and compares them with the events that
// list them.
func (o *Org) ancestors(ctx context.Context, r repo) error {
	for after := ""; ; {
		result, err := o.Store.RecheckAncestors(ctx, r.id, after)
		if err != nil || len(result.Ancestors) == 0 {
			return err
		}
		for _, d := range result.Differences {
			o.Problemf(checkObjects, o.Name, "commit "+r.name+"@"+d.Commit, "%s", d.Problem)
		}

		unlisted := make(map[string]bool)
		for _, a := range result.Ancestors {
			after = a.Commit
			if a.SigningKey != "" {
				o.Signers.Claim(a.SigningKey)
			}
			key := commitKey(r.id, a.Commit)
			if !o.facts.objects[key] {
				unlisted[a.Commit] = true
			}
			delete(o.facts.objects, key)
		}
		if err := o.unlisted(ctx, r, unlisted); err != nil {
			return err
		}
	}
}

// unlisted reports the commits whose objects no event lists.
func (o *Org) unlisted(ctx context.Context, r repo, commits map[string]bool) error {
	if len(commits) == 0 || o.facts.unread+o.facts.leftObjects > 0 { // perhaps one of those events does
		return nil
	}
	err := o.Read(ctx, func(conn *sqldb.Conn) error { return o.changedSince(conn, r.id, commits) })
	if err != nil {
		return fmt.Errorf("read events of objects: %w", err)
	}
	for _, sha := range slices.Sorted(maps.Keys(commits)) {
		o.Problemf(checkObjects, o.Name, "commit "+r.name+"@"+sha, "its object is stored, and no event lists it")
	}
	return nil
}
