package store

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/internal/cursor"
	"github.com/ledgerd/ledgerd/store/txn"
)

// listing returns the list of a kind that a row owns, such as an org or a repo.
func (rd reader) listing(kind string, owner int64) txn.Listing {
	return txn.NewListing(rd.caches.cursors, kind, owner)
}

// openCursors makes the key with which cursors are sealed known. All servers of a database use the
// same.
func (s *Store) openCursors(ctx context.Context) error {
	sealer, err := readLoose(ctx, s, forWrite(""), func(rd reader) (*cursor.Sealer, error) {
		var key []byte
		if err := rd.Row("SELECT key FROM cursor_key").Scan(&key); err != nil {
			return nil, err
		}
		return cursor.New(key)
	})
	s.caches.cursors = sealer
	return err
}

// listWalk returns a page of a list in an org. find returns the walk that reads it, which has one
// key, given the row id of the org. Errors name the rows as what does.
func listWalk[T any](
	ctx context.Context, s *Store, org string, q txn.Query, what string, find func(reader, int64) (txn.Walk[T], error),
) (ledger.Page[T], error) {
	return read(ctx, s, byOrg(org), func(rd reader) (list ledger.Page[T], err error) {
		orgID, err := rd.orgID(org)
		if err != nil {
			return list, err
		}
		l := rd.listing(what, orgID)
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
