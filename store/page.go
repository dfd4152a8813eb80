package store

import (
	"strconv"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/internal/cursor"
)

const (
	// maxExamined is the maximum number of rows that a page of a list examines. A page
	// on which fewer rows match the filter than are asked for is short, or empty.
	maxExamined = 5000
	// maxPageBytes is the size at which a page is full.
	maxPageBytes = 1 << 20
)

// A Query selects a page of a list.
type Query struct {
	// Limit is the maximum number of rows, from 1 to 500.
	Limit int
	// Cursor is the NextCursor of the previous page; empty for the first page.
	Cursor string
}

var errCursor = ledger.Errorf(
	ledger.CodeInvalidCursor, "invalid cursor: it is not from this list (start without a cursor)")

// A listing is a list of one owner. Its cursors are of no use in another.
type listing struct {
	sealer *cursor.Sealer
	name   string
}

// newListing returns the list of a kind that a row owns, such as an org or a repo.
func newListing(sealer *cursor.Sealer, kind string, owner int64) listing {
	return listing{sealer, kind + " " + strconv.FormatInt(owner, 10)}
}

// position returns the n numbers in the query's cursor, or nil for the first page.
func (l listing) position(q Query, n int) ([]int64, error) {
	if q.Cursor == "" {
		return nil, nil
	}
	position, ok := l.sealer.Open(l.name, q.Cursor, n)
	if !ok {
		return nil, errCursor
	}
	return position, nil
}

// after returns the number in the query's cursor, or first if there is no cursor.
func (l listing) after(q Query, first int64) (int64, error) {
	position, err := l.position(q, 1)
	if position == nil {
		return first, err
	}
	return position[0], nil
}

// cursor returns the cursor with a position.
func (l listing) cursor(position ...int64) string { return l.sealer.Seal(l.name, position) }

// cursorOf returns the cursor with a key, whose values are numbers.
func (l listing) cursorOf(key []any) string {
	position := make([]int64, len(key))
	for i, value := range key {
		position[i] = value.(int64)
	}
	return l.cursor(position...)
}

// A keyed is a row of a list with its row id, which the cursor contains.
type keyed[T any] struct {
	id  int64
	row T
}

// idOf returns the key of a row in a list by row id.
func idOf[T any](r keyed[T]) []any { return []any{r.id} }

// A part is a page of a list, or of one of the indexes that it is read by.
type part[T any] struct {
	rows []keyed[T]
	// end is the key of the last row that was examined. It is nil if there are no more.
	end []any
	// examined is the largest number of rows that may have been examined.
	examined int
}

// page returns the page of a list, whose cursor contains the numbers in p.end.
func (p part[T]) page(l listing) ledger.Page[T] {
	list := ledger.Page[T]{Data: p.data()}
	if p.end != nil {
		list.NextCursor = l.cursorOf(p.end)
	}
	return list
}

// data returns the rows. It is never nil.
func (p part[T]) data() []T {
	list := make([]T, len(p.rows))
	for i, r := range p.rows {
		list[i] = r.row
	}
	return list
}
