package txn

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// All runs a query and returns its rows, each converted by scan.
func All[T any](rd Reader, scan func(Scanner) (T, error), query string, args ...any) ([]T, error) {
	return sqldb.All(rd.Conn, scan, query, args...)
}

// ListWalk returns a page of a list in an org. find returns the walk that reads it, which has one
// key, given the row id of the org. Errors name the rows as what does.
func ListWalk[T any](
	ctx context.Context, db *DB, org string, q Query, what string, find func(Reader, int64) (Walk[T], error),
) (ledger.Page[T], error) {
	return Read(ctx, db, ByOrg(org), func(rd Reader) (list ledger.Page[T], err error) {
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
		p, err := w.Run(rd.Conn, position, q.Limit, MaxExamined)
		if err != nil {
			return list, fmt.Errorf("list %s: %w", what, err)
		}
		return p.Page(l), nil
	})
}

// ListOf reads one page of an org's rows, which what names. The query's parameters are the org's id,
// the id after which the page starts, and the number of rows.
func ListOf[T any](
	ctx context.Context, db *DB, org, what string, q Query, scan func(Scanner) (Keyed[T], error),
	query string,
) (ledger.Page[T], error) {
	return Read(ctx, db, ByOrg(org), func(rd Reader) (list ledger.Page[T], err error) {
		orgID, err := rd.OrgID(org)
		if err != nil {
			return list, err
		}
		return PageOf(rd, what, orgID, q, scan, query)
	})
}

// PageOf reads one page of the rows of an owner, which what names. The query's parameters are the
// id of the owner, the id after which the page starts, and the number of rows.
func PageOf[T any](
	rd Reader, what string, owner int64, q Query, scan func(Scanner) (Keyed[T], error), query string,
) (ledger.Page[T], error) {
	l := rd.Listing(what, owner)
	after, err := l.After(q, 0)
	if err != nil {
		return ledger.Page[T]{}, err
	}
	p, err := ReadPage(rd.Conn, scan, q.Limit, query, owner, after)
	return p.Page(l), err
}
