package client

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"net/url"

	"github.com/ledgerd/ledgerd/ledger"
)

// list walks over a list page by page. A page is asked for when the one before
// it is used up; after an error the walk is over.
func list[T any](ctx context.Context, c *Client, path string, query url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		query := maps.Clone(query)
		for {
			page, _, err := call[ledger.Page[T]](ctx, c, request{method: http.MethodGet, path: path, query: query})
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, record := range page.Data {
				if !yield(record, nil) {
					return
				}
			}
			if page.NextCursor == "" {
				return
			}
			query.Set("cursor", page.NextCursor)
		}
	}
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
