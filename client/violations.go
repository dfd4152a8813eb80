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

// An EnvironmentFilter filters a list of environments. The zero value matches all of an
// org, but at most ledger.MaxEnvironments of a repo.
type EnvironmentFilter struct {
	Repo string
	Name string // the part of the predicate after "deploy:"
}

func (f EnvironmentFilter) query() url.Values {
	return parameters("repo", f.Repo, "environment", f.Name)
}

// Environments lists what runs in the environments of an org: the oldest repo first, and
// within a repo the last changed environment first.
func (c *Client) Environments(
	ctx context.Context, org string, f EnvironmentFilter,
) iter.Seq2[ledger.Environment, error] {
	return list[ledger.Environment](ctx, c, pathOf("orgs", org, "environments"), f.query())
}

// EnvironmentsPage returns one page of the list of Environments.
func (c *Client) EnvironmentsPage(
	ctx context.Context, org string, f EnvironmentFilter, q Query,
) (ledger.Page[ledger.Environment], error) {
	return page[ledger.Environment](ctx, c, pathOf("orgs", org, "environments"), f.query(), q)
}
