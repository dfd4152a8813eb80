package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/lineage"
)

// A CommitFilter filters a list of commits. The zero value matches all.
type CommitFilter struct {
	State  *ledger.State
	Branch string
	// Author is an author's name or e-mail address or, if no author has it, a part of one.
	Author string
	// Text is in the subject, the branch, or the author's name or e-mail address, or begins
	// the ID. ASCII letters match in any case.
	Text string
	// InFlight matches only commits in flight.
	InFlight bool
	// Standing adds to each commit its missing requirements and the number of its
	// overlaps.
	Standing bool
}

func (f CommitFilter) query() url.Values {
	var state string
	if f.State != nil {
		state = f.State.String()
	}
	query := parameters("state", state, "branch", f.Branch, "author", f.Author, "text", f.Text)
	if f.InFlight {
		query.Set("in_flight", "true")
	}
	if f.Standing {
		query.Set("standing", "true")
	}
	return query
}

// Commits lists the commits of a repo, the most recently registered first.
func (c *Client) Commits(ctx context.Context, org, repo string, f CommitFilter) iter.Seq2[ledger.CommitSummary, error] {
	query := f.query()
	if f.InFlight {
		query.Set("limit", "500") // callers usually need all of them
	}
	return list[ledger.CommitSummary](ctx, c, pathOf("orgs", org, "repos", repo, "commits"), query)
}

// CommitsPage returns one page of the list of Commits.
func (c *Client) CommitsPage(
	ctx context.Context, org, repo string, f CommitFilter, q Query,
) (ledger.Page[ledger.CommitSummary], error) {
	return page[ledger.CommitSummary](ctx, c, pathOf("orgs", org, "repos", repo, "commits"), f.query(), q)
}

// Commit returns a commit by its id, or by a unique prefix of at least 7 digits.
func (c *Client) Commit(ctx context.Context, org, repo, sha string) (ledger.Commit, error) {
	return get[ledger.Commit](ctx, c, pathOf("orgs", org, "repos", repo, "commits", sha))
}

// CommitFor is like Commit, but answers for one target branch: the requirements are
// evaluated as if the commit was meant for that branch alone, and TargetState is set. With an environment, Delivery
// is set if the policy asks for it. Either may be empty.
func (c *Client) CommitFor(ctx context.Context, org, repo, sha, target, environment string,
) (ledger.Commit, error) {
	commit, _, err := call[ledger.Commit](ctx, c, request{
		method: http.MethodGet, path: pathOf("orgs", org, "repos", repo, "commits", sha),
		query: parameters("target", target, "env", environment),
	})
	return commit, err
}

// Gate answers whether a commit has reached a state, for one target branch if target is not empty,
// and was not rolled back from the environment if that is not empty.
func (c *Client) Gate(
	ctx context.Context, org, repo, sha string, required ledger.State, target, environment string,
) (ledger.Gate, error) {
	gate, _, err := call[ledger.Gate](ctx, c, request{
		method: http.MethodGet, path: pathOf("orgs", org, "repos", repo, "commits", sha, "gate"),
		query: parameters("state", required.String(), "target", target, "env", environment),
	})
	return gate, err
}

// Correct replaces what registrations have claimed of a commit. It needs a token with the
// scope admin.
func (c *Client) Correct(
	ctx context.Context, org, repo, sha string, change ledger.CommitCorrection,
) (ledger.Commit, error) {
	body := make(map[string]any)
	if change.Targets != nil {
		body["targets"] = append([]string{}, *change.Targets...)
	}
	if change.Changes != nil {
		if body["changes"] = *change.Changes; *change.Changes == nil {
			body["changes"] = nil
		}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return ledger.Commit{}, fmt.Errorf("encode the correction: %w", err)
	}
	commit, _, err := call[ledger.Commit](ctx, c, request{
		method: http.MethodPatch, path: pathOf("orgs", org, "repos", repo, "commits", sha), body: text,
	})
	return commit, err
}

// Transitions lists the transitions of a commit, newest first.
func (c *Client) Transitions(ctx context.Context, org, repo, sha string) iter.Seq2[ledger.Transition, error] {
	return list[ledger.Transition](ctx, c, pathOf("orgs", org, "repos", repo, "commits", sha, "transitions"), parameters())
}

// TransitionsPage returns one page of the list of Transitions.
func (c *Client) TransitionsPage(
	ctx context.Context, org, repo, sha string, q Query,
) (ledger.Page[ledger.Transition], error) {
	return page[ledger.Transition](
		ctx, c, pathOf("orgs", org, "repos", repo, "commits", sha, "transitions"), parameters(), q)
}

// AddObjects records the objects of commits, and returns those of o.Commits whose objects the ledger does not have.
func (c *Client) AddObjects(ctx context.Context, org, repo string, o lineage.Objects) (unknown []string, err error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encode the objects: %w", err)
	}
	r, _, err := call[lineage.UnknownObjects](ctx, c, request{
		method: http.MethodPost, path: pathOf("orgs", org, "repos", repo, "objects"), body: body,
	})
	return r.Unknown, err
}

// Register registers a commit, or updates its record. It returns the commit and
// reports whether it is new.
func (c *Client) Register(
	ctx context.Context, org, repo, sha string, r ledger.Registration,
) (ledger.Commit, bool, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return ledger.Commit{}, false, fmt.Errorf("encode the registration: %w", err)
	}
	commit, a, err := call[ledger.Commit](ctx, c, request{
		method: http.MethodPut,
		path:   pathOf("orgs", org, "repos", repo, "commits", sha),
		body:   body,
	})
	if err != nil {
		return ledger.Commit{}, false, err
	}
	return commit, a.created(), nil
}
