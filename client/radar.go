package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// An OverlapFilter filters a list of overlaps. The zero value matches all.
type OverlapFilter struct {
	// Level matches only overlaps of exactly this level.
	Level radar.Level
	// Commit is the id of one of the two commits, or a unique prefix of it.
	Commit string
	// Branch is the branch of one of the two commits.
	Branch string
}

func (f OverlapFilter) query() url.Values {
	query := parameters("commit", f.Commit, "branch", f.Branch)
	if f.Level != radar.NoLevel {
		query.Set("level", f.Level.String())
	}
	return query
}

// Truncated returns the commits of the pairs that had more overlaps than the ledger
// stores, each once. If the filter names a commit or a branch, it returns only that
// one.
func (f OverlapFilter) Truncated(pairs []ledger.RadarPair) []ledger.RadarCommit {
	var truncated []ledger.RadarCommit
	for _, pair := range pairs {
		for _, side := range []ledger.RadarCommit{pair.Commit, pair.Other} {
			matches := strings.HasPrefix(side.SHA, f.Commit) && (f.Branch == "" || f.Branch == side.Branch)
			same := func(c ledger.RadarCommit) bool { return c.SHA == side.SHA }
			if side.OverlapsTruncated && matches && !slices.ContainsFunc(truncated, same) {
				truncated = append(truncated, side)
			}
		}
	}
	return truncated
}

// OverlapsTruncated reports whether the commit or the branch of a filter had more
// overlaps than the ledger stores. Use it if the list of overlaps is empty, when
// Truncated cannot report it.
func (c *Client) OverlapsTruncated(ctx context.Context, org, repo string, f OverlapFilter) (bool, error) {
	switch {
	case f.Commit != "":
		commit, err := c.Commit(ctx, org, repo, f.Commit)
		return commit.OverlapsTruncated, err
	case f.Branch != "":
		tips, err := Collect(c.Commits(ctx, org, repo, CommitFilter{Branch: f.Branch, InFlight: true, Standing: true}), 1)
		return len(tips) > 0 && tips[0].OverlapsTruncated, err
	}
	return false, nil
}

// Overlaps lists the open overlaps of a repo's commits in flight, strongest first.
func (c *Client) Overlaps(ctx context.Context, org, repo string, f OverlapFilter) iter.Seq2[ledger.RadarPair, error] {
	return list[ledger.RadarPair](ctx, c, pathOf("orgs", org, "repos", repo, "radar"), f.query())
}

// OverlapsPage returns one page of the list of Overlaps.
func (c *Client) OverlapsPage(
	ctx context.Context, org, repo string, f OverlapFilter, q Query,
) (ledger.Page[ledger.RadarPair], error) {
	return page[ledger.RadarPair](ctx, c, pathOf("orgs", org, "repos", repo, "radar"), f.query(), q)
}

// PreviewOverlaps returns the overlaps that a commit would have if it were
// registered now. It is a dry run and writes nothing.
func (c *Client) PreviewOverlaps(
	ctx context.Context, org, repo string, q ledger.RadarQuery,
) (ledger.RadarResult, error) {
	return post[ledger.RadarResult](ctx, c, pathOf("orgs", org, "repos", repo, "radar"), q)
}

// Withdraw takes a commit out of flight, because its branch was abandoned. The
// commit is named by its id or by a unique prefix of at least 7 digits. Withdrawing
// a commit again is a no-op.
func (c *Client) Withdraw(ctx context.Context, org, repo, sha string) (ledger.Commit, error) {
	commit, _, err := call[ledger.Commit](ctx, c, request{
		method: http.MethodPost,
		path:   pathOf("orgs", org, "repos", repo, "commits", sha, "withdraw"),
	})
	return commit, err
}
