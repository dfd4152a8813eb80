package txn

import (
	"strconv"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/internal/cursor"
)

const (
	// MaxExamined is the maximum number of rows that a page of a list examines. A page
	// on which fewer rows match the filter than are asked for is short, or empty.
	MaxExamined = 5000
	// MaxPageBytes is the size at which a page is full.
	MaxPageBytes = 1 << 20
)

// A Query selects a page of a list.
type Query struct {
	// Limit is the maximum number of rows, from 1 to 500.
	Limit int
	// Cursor is the NextCursor of the previous page; empty for the first page.
	Cursor string
}

// ErrCursor is the error of a cursor that is not from the list.
var ErrCursor = ledger.Errorf(
	ledger.CodeInvalidCursor, "invalid cursor: it is not from this list (start without a cursor)")

// A Listing is a list of one owner. Its cursors are of no use in another.
type Listing struct {
	sealer *cursor.Sealer
	name   string
}

// newListing returns the list of a kind that a row owns, such as an org or a repo.
func newListing(sealer *cursor.Sealer, kind string, owner int64) Listing {
	return Listing{sealer, kind + " " + strconv.FormatInt(owner, 10)}
}

// Position returns the n numbers in the query's cursor, or nil for the first page.
func (l Listing) Position(q Query, n int) ([]int64, error) {
	if q.Cursor == "" {
		return nil, nil
	}
	position, ok := l.sealer.Open(l.name, q.Cursor, n)
	if !ok {
		return nil, ErrCursor
	}
	return position, nil
}

// After returns the number in the query's cursor, or first if there is no cursor.
func (l Listing) After(q Query, first int64) (int64, error) {
	position, err := l.Position(q, 1)
	if position == nil {
		return first, err
	}
	return position[0], nil
}

// Cursor returns the cursor with a position.
func (l Listing) Cursor(position ...int64) string { return l.sealer.Seal(l.name, position) }

// CursorOf returns the cursor with a key, whose values are numbers.
func (l Listing) CursorOf(key []any) string {
	position := make([]int64, len(key))
	for i, value := range key {
		position[i] = value.(int64)
	}
	return l.Cursor(position...)
}

// A Keyed is a row of a list with its row id, which the cursor contains.
type Keyed[T any] struct {
	ID  int64
	Row T
}

// IDOf returns the key of a row in a list by row id.
func IDOf[T any](r Keyed[T]) []any { return []any{r.ID} }

// A Section is a page of a list, or of one of the indexes that it is read by.
type Section[T any] struct {
	Rows []Keyed[T]
	// End is the key of the last row that was examined. It is nil if there are no more.
	End []any
	// Examined is the largest number of rows that may have been examined.
	Examined int
}

// Page returns the page of a list, whose cursor contains the numbers in p.End.
func (p Section[T]) Page(l Listing) ledger.Page[T] {
	list := ledger.Page[T]{Data: p.Data()}
	if p.End != nil {
		list.NextCursor = l.CursorOf(p.End)
	}
	return list
}

// Data returns the rows. It is never nil.
func (p Section[T]) Data() []T {
	list := make([]T, len(p.Rows))
	for i, r := range p.Rows {
		list[i] = r.Row
	}
	return list
}
