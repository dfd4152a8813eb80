package client

import (
	"context"
	"iter"
	"net/url"

	"github.com/ledgerd/ledgerd/ledger"
)

// A ViolationFilter filters a list of violations. The zero value matches all of an org.
type ViolationFilter struct {
	Status    ledger.ViolationStatus
	Repo      string
	Predicate string
	// Commit is a commit's id, or a unique prefix of at least 7 digits. It needs Repo.
	Commit string
}

func (f ViolationFilter) query() url.Values {
	return parameters("status", string(f.Status), "repo", f.Repo, "predicate", f.Predicate, "commit", f.Commit)
}

// Violations lists the violations of an org, the latest first.
func (c *Client) Violations(ctx context.Context, org string, f ViolationFilter) iter.Seq2[ledger.Violation, error] {
	return list[ledger.Violation](ctx, c, pathOf("orgs", org, "violations"), f.query())
}

// ViolationsPage returns one page of the list of Violations.
func (c *Client) ViolationsPage(
	ctx context.Context, org string, f ViolationFilter, q Query,
) (ledger.Page[ledger.Violation], error) {
	return page[ledger.Violation](ctx, c, pathOf("orgs", org, "violations"), f.query(), q)
}
