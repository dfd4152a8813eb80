package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"

	"github.com/ledgerd/ledgerd/ledger"
)

// An AuditFilter filters the administrative actions in an org. Empty fields do not filter.
type AuditFilter struct {
	// Action is an action, such as token.created, or a kind of resource, such as token.
	Action ledger.AuditAction
	// By is the ID of a token, or the name of somebody without a token, such as host.
	By   string
	Repo string
	// Since is the time of the oldest action. 0 means no limit.
	Since ledger.Time
	// OldestFirst reverses the order.
	OldestFirst bool
}

func (f AuditFilter) query() url.Values {
	query := parameters("action", string(f.Action), "by", f.By, "repo", f.Repo, "since", f.Since.String())
	if f.OldestFirst {
		query.Set("order", "asc")
	}
	return query
}

// Audit lists the administrative actions in an org, newest first. Each is the body of an event of
// the type audit, byte for byte as it was logged: a [ledger.AuditEvent]. It needs the scope admin.
func (c *Client) Audit(ctx context.Context, org string, f AuditFilter) iter.Seq2[json.RawMessage, error] {
	return list[json.RawMessage](ctx, c, pathOf("orgs", org, "audit"), f.query())
}

// AuditPage returns one page of the list of Audit.
func (c *Client) AuditPage(
	ctx context.Context, org string, f AuditFilter, q Query,
) (ledger.Page[json.RawMessage], error) {
	return page[json.RawMessage](ctx, c, pathOf("orgs", org, "audit"), f.query(), q)
}
