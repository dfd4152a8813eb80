package client

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/ledgerd/ledgerd/ledger"
)

// list walks over a list page by page. A page is asked for when the one before
// it is used up; after an error the walk is over.
func list[T any](ctx context.Context, c *Client, path string, query url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		query := maps.Clone(query)
		var next Query
		for {
			p, err := page[T](ctx, c, path, query, next)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, record := range p.Data {
				if !yield(record, nil) {
					return
				}
			}
			if next.Cursor = p.NextCursor; next.Cursor == "" {
				return
			}
		}
	}
}

// A Query says which page of a list is wanted.
type Query struct {
	// Limit is how many records at most, up to 500; 50 where 0.
	Limit int
	// Cursor is the NextCursor of the page before; empty for the first.
	Cursor string
}

// page asks for one page of a list.
func page[T any](ctx context.Context, c *Client, path string, query url.Values, q Query) (ledger.Page[T], error) {
	if q.Limit != 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Cursor != "" {
		query.Set("cursor", q.Cursor)
	}
	p, _, err := call[ledger.Page[T]](ctx, c, request{method: http.MethodGet, path: path, query: query})
	return p, err
}

// Collect returns up to limit records of a list, all of them where limit is 0.
func Collect[T any](records iter.Seq2[T, error], limit int) ([]T, error) {
	all := []T{}
	for record, err := range records {
		if err != nil {
			return all, err
		}
		all = append(all, record)
		if len(all) == limit {
			break
		}
	}
	return all, nil
}

// parameters makes a query of names and values in turn, without those that
// are empty.
func parameters(pairs ...string) url.Values {
	query := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	return query
}
