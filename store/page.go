package store

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
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

// cursorOf returns the cursor with a key, whose values are numbers.
func cursorOf(key []any) string {
	numbers := make([]int64, len(key))
	for i, value := range key {
		numbers[i] = value.(int64)
	}
	return cursor(numbers...)
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

// page returns the page, whose cursor contains the numbers in p.end.
func (p part[T]) page() ledger.Page[T] {
	list := ledger.Page[T]{Data: make([]T, len(p.rows))}
	for i, r := range p.rows {
		list.Data[i] = r.row
	}
	if p.end != nil {
		list.NextCursor = cursorOf(p.end)
	}
	return list
}
