package client

import (
	"context"
	"iter"
	"net/url"

	"github.com/ledgerd/ledgerd/ledger"
)

// An ExceptionFilter filters a list of exceptions. The zero value matches all.
type ExceptionFilter struct {
	// Commit is the id of the commit, or a unique prefix of it.
	Commit string
	// Active matches only exceptions that count now. The list then begins with those that
	// end first, otherwise with the newest.
	Active bool
}

func (f ExceptionFilter) query() url.Values {
	query := parameters("commit", f.Commit)
	if f.Active {
		query.Set("active", "true")
	}
	return query
}

// Exceptions lists the exceptions of a repo.
func (c *Client) Exceptions(
	ctx context.Context, org, repo string, f ExceptionFilter,
) iter.Seq2[ledger.ExceptionRecord, error] {
	return list[ledger.ExceptionRecord](ctx, c, pathOf("orgs", org, "repos", repo, "exceptions"), f.query())
}

// ExceptionsPage returns one page of the list of Exceptions.
func (c *Client) ExceptionsPage(
	ctx context.Context, org, repo string, f ExceptionFilter, q Query,
) (ledger.Page[ledger.ExceptionRecord], error) {
	return page[ledger.ExceptionRecord](ctx, c, pathOf("orgs", org, "repos", repo, "exceptions"), f.query(), q)
}
