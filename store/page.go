package store

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
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

// keys returns the n numbers in the query's cursor, or nil for the first page.
func (q Query) keys(n int) ([]int64, error) {
	if q.Cursor == "" {
		return nil, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil {
		return nil, errCursor
	}
	parts := strings.Split(string(text), ".")
	if len(parts) != n {
		return nil, errCursor
	}
	keys := make([]int64, n)
	for i, part := range parts {
		if keys[i], err = strconv.ParseInt(part, 10, 64); err != nil {
			return nil, errCursor
		}
	}
	return keys, nil
}

// after returns the number in the query's cursor, or first if there is no cursor.
func (q Query) after(first int64) (int64, error) {
	keys, err := q.keys(1)
	if keys == nil {
		return first, err
	}
	return keys[0], nil
}

func cursor(keys ...int64) string {
	var text []byte
	for i, key := range keys {
		if i > 0 {
			text = append(text, '.')
		}
		text = strconv.AppendInt(text, key, 10)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// A keyed is a row of a list with its row id, which the cursor contains.
type keyed[T any] struct {
	id  int64
	row T
}

// page returns the page of the first limit rows. The query must have read up to
// limit+1 rows: the additional row shows that there is a next page.
func page[T any](rows []keyed[T], limit int) ledger.Page[T] {
	p := ledger.Page[T]{Data: make([]T, 0, min(len(rows), limit))}
	if len(rows) > limit {
		p.NextCursor = cursor(rows[limit-1].id)
		rows = rows[:limit]
	}
	for _, r := range rows {
		p.Data = append(p.Data, r.row)
	}
	return p
}
