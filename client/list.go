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

// list returns an iterator over all records of a list. It requests each page once
// the previous one has been consumed, and ends after an error. A page without records
// can have a next page.
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

// A Query selects a page of a list.
type Query struct {
	// Limit is the maximum number of records, up to 500. 0 means 50.
	Limit int
	// Cursor is the NextCursor of the previous page, or empty for the first page.
	Cursor string
}

// addTo adds the page to the parameters of a request.
func (q Query) addTo(query url.Values) {
	if q.Limit != 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Cursor != "" {
		query.Set("cursor", q.Cursor)
	}
}

// page returns one page of a list. It can have fewer records than the limit, or none,
// although there is a next page.
func page[T any](ctx context.Context, c *Client, path string, query url.Values, q Query) (ledger.Page[T], error) {
	q.addTo(query)
	p, _, err := call[ledger.Page[T]](ctx, c, request{method: http.MethodGet, path: path, query: query})
	if err != nil {
		return p, err
	}
	requested := keyIn(path, query)
	for _, record := range p.Data {
		if err := requested.check(record, false); err != nil {
			return ledger.Page[T]{}, err
		}
	}
	return p, nil
}

// Collect returns the first records of a list, at most limit. If limit is 0, it returns
// all. If the list fails, it returns the records before the error, with the error.
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

// parameters returns a query of alternating names and values, without empty values.
func parameters(pairs ...string) url.Values {
	query := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	return query
}
