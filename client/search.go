package client

import (
	"context"
	"strconv"

	"github.com/ledgerd/ledgerd/ledger/insights"
	"github.com/ledgerd/ledgerd/ledger/search"
)

// Search returns what a query finds in an org: words, a commit ID, a digest or the ID of a
// record. q.Limit is the maximum number of hits of each type, up to 100; 0 means 20.
// q.Cursor is the NextCursor of the previous result, to compare older records.
func (c *Client) Search(ctx context.Context, org, query string, q Query) (search.Result, error) {
	limit := ""
	if q.Limit != 0 {
		limit = strconv.Itoa(q.Limit)
	}
	parameters := parameters("q", query, "limit", limit, "cursor", q.Cursor)
	return get[search.Result](ctx, c, pathOf("orgs", org, "search")+"?"+parameters.Encode())
}

// Insights returns the figures of an org, or of a repo if it is not empty, about the last
// days: up to 365; 0 means 90.
func (c *Client) Insights(ctx context.Context, org, repo string, days int) (insights.Report, error) {
	path := pathOf("orgs", org, "insights")
	last := ""
	if days != 0 {
		last = strconv.Itoa(days)
	}
	if query := parameters("repo", repo, "days", last); len(query) > 0 {
		path += "?" + query.Encode()
	}
	return get[insights.Report](ctx, c, path)
}
