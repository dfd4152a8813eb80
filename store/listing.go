package store

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/txn"
)

// listWalk returns a page of a list in an org. find returns the walk that reads it, which has one
// key, given the row id of the org. Errors name the rows as what does.
func listWalk[T any](
	ctx context.Context, s *Store, org string, q txn.Query, what string, find func(reader, int64) (txn.Walk[T], error),
) (ledger.Page[T], error) {
	return read(ctx, s, txn.ByOrg(org), func(rd reader) (list ledger.Page[T], err error) {
		orgID, err := rd.OrgID(org)
		if err != nil {
			return list, err
		}
		l := rd.Listing(what, orgID)
		keys, err := l.Position(q, 1)
		if err != nil {
			return list, err
		}
		var position []any
		if keys != nil {
			position = []any{keys[0]}
		}

		w, err := find(rd, orgID)
		if err != nil {
			return list, err
		}
		p, err := w.Run(rd.Conn, position, q.Limit, txn.MaxExamined)
		if err != nil {
			return list, fmt.Errorf("list %s: %w", what, err)
		}
		return p.Page(l), nil
	})
}
