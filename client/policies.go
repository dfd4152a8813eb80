package client

import (
	"context"
	"iter"
	"net/http"
	"strconv"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/lint"
)

// Policy returns the active policy of a repo, and its ETag for SetPolicy.
func (c *Client) Policy(ctx context.Context, org, repo string) (p policy.Policy, etag string, err error) {
	p, a, err := call[policy.Policy](ctx, c, request{method: http.MethodGet, path: pathOf("orgs", org, "policies", repo)})
	if err != nil {
		return p, "", err
	}
	return p, a.header.Get("ETag"), nil
}

// PolicyVersion returns one version of a repo's policy, counted from 1.
func (c *Client) PolicyVersion(ctx context.Context, org, repo string, version int) (policy.Policy, error) {
	p, _, err := call[policy.Policy](ctx, c, request{
		method: http.MethodGet,
		path:   pathOf("orgs", org, "policies", repo),
		query:  parameters("version", strconv.Itoa(version)),
	})
	return p, err
}

// PolicyVersions lists the versions of a repo's policy, newest first, without their
// contracts.
func (c *Client) PolicyVersions(ctx context.Context, org, repo string) iter.Seq2[policy.Summary, error] {
	return list[policy.Summary](ctx, c, pathOf("orgs", org, "policies", repo, "versions"), parameters())
}

// PolicyVersionsPage returns one page of the list of PolicyVersions.
func (c *Client) PolicyVersionsPage(
	ctx context.Context, org, repo string, q Query,
) (ledger.Page[policy.Summary], error) {
	return page[policy.Summary](ctx, c, pathOf("orgs", org, "policies", repo, "versions"), parameters(), q)
}

// SetPolicy replaces the policy of a repo with a contract, which is a JSON document.
// The etag is that of the policy to replace. If another policy is active, SetPolicy
// writes nothing and returns an error with the code ledger.CodePreconditionFailed.
func (c *Client) SetPolicy(ctx context.Context, org, repo string, contract []byte, etag string) (policy.Policy, error) {
	p, _, err := call[policy.Policy](ctx, c, request{
		method:  http.MethodPut,
		path:    pathOf("orgs", org, "policies", repo),
		body:    contract,
		ifMatch: etag,
	})
	return p, err
}

// Simulate returns the commits that would change state under a contract, which is a
// JSON document: it counts all, and lists the first ledger.MaxMoves. It is a dry run and
// writes nothing.
func (c *Client) Simulate(ctx context.Context, org, repo string, contract []byte) (ledger.Simulation, error) {
	s, _, err := call[ledger.Simulation](ctx, c, request{
		method: http.MethodPost,
		path:   pathOf("orgs", org, "policies", repo, "simulate"),
		body:   contract,
	})
	return s, err
}

// LintPolicy reviews a contract, which is a JSON document, or the active one of the repo if
// it is nil.
func (c *Client) LintPolicy(ctx context.Context, org, repo string, contract []byte) (lint.Review, error) {
	r, _, err := call[lint.Review](ctx, c, request{
		method: http.MethodPost,
		path:   pathOf("orgs", org, "policies", repo, "lint"),
		body:   contract,
	})
	return r, err
}
