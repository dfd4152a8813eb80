package client

import (
	"context"
	"net/http"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attention"
)

// An AttentionFilter filters what needs attention. The zero value matches all of an org.
type AttentionFilter struct {
	Kind attention.Kind
	Repo string
}

// AttentionPage returns a page of what needs attention in an org, the most urgent first. It
// has what only admins may see if the token has the scope admin.
func (c *Client) AttentionPage(
	ctx context.Context, org string, f AttentionFilter, q Query,
) (attention.List, error) {
	query := parameters("kind", string(f.Kind), "repo", f.Repo)
	q.addTo(query)
	list, _, err := call[attention.List](ctx, c,
		request{method: http.MethodGet, path: pathOf("orgs", org, "attention"), query: query})
	return list, err
}

// An OverviewFilter filters and sorts the repos of an overview. The zero value lists all by
// name.
type OverviewFilter struct {
	Name string // a part of the name, in any case
	Sort ledger.OverviewSort
	// Reverse reverses the order.
	Reverse bool
}

// OverviewPage returns a page of the repos of an org, with what people want to know of each
// first.
func (c *Client) OverviewPage(ctx context.Context, org string, f OverviewFilter, q Query) (ledger.Overview, error) {
	query := parameters("name", f.Name, "sort", string(f.Sort))
	if f.Reverse {
		query.Set("reverse", "true")
	}
	q.addTo(query)
	v, _, err := call[ledger.Overview](ctx, c,
		request{method: http.MethodGet, path: pathOf("orgs", org, "overview"), query: query})
	return v, err
}
