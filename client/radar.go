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

// An OverlapFilter narrows a list of overlaps; its zero value lets all pass.
type OverlapFilter struct {
	// Level lets only overlaps of exactly this level pass.
	Level radar.Level
	// Commit is the sha of either of the two commits, or a unique prefix of it.
	Commit string
	// Branch is that of either of the two.
	Branch string
}

func (f OverlapFilter) query() url.Values {
	query := parameters("commit", f.Commit, "branch", f.Branch)
	if f.Level != radar.NoLevel {
		query.Set("level", f.Level.String())
	}
	return query
}

// Truncated returns the commits of the pairs that had more overlaps than are
// kept, each once; where the filter names a commit or a branch, only that one.
func (f OverlapFilter) Truncated(pairs []ledger.RadarPair) []ledger.RadarCommit {
	var truncated []ledger.RadarCommit
	for _, pair := range pairs {
		for _, side := range []ledger.RadarCommit{pair.Commit, pair.Other} {
			named := strings.HasPrefix(side.SHA, f.Commit) && (f.Branch == "" || f.Branch == side.Branch)
			known := func(c ledger.RadarCommit) bool { return c.SHA == side.SHA }
			if side.OverlapsTruncated && named && !slices.ContainsFunc(truncated, known) {
				truncated = append(truncated, side)
			}
		}
	}
	return truncated
}

// OverlapsTruncated tells whether the commit or the branch that a filter names
// had more overlaps than are kept, which a list without overlaps cannot tell.
func (c *Client) OverlapsTruncated(ctx context.Context, org, repo string, f OverlapFilter) (bool, error) {
	switch {
	case f.Commit != "":
		commit, err := c.Commit(ctx, org, repo, f.Commit)
		return commit.OverlapsTruncated, err
	case f.Branch != "":
		tips, err := c.CommitsPage(ctx, org, repo, CommitFilter{Branch: f.Branch, InFlight: true, Standing: true},
			Query{Limit: 1})
		return len(tips.Data) > 0 && tips.Data[0].OverlapsTruncated, err
	}
	return false, nil
}

// Overlaps lists the open overlaps of a repo's commits in flight, the strongest
// first.
func (c *Client) Overlaps(ctx context.Context, org, repo string, f OverlapFilter) iter.Seq2[ledger.RadarPair, error] {
	return list[ledger.RadarPair](ctx, c, pathOf("orgs", org, "repos", repo, "radar"), f.query())
}

// OverlapsPage returns one page of what Overlaps lists.
func (c *Client) OverlapsPage(
	ctx context.Context, org, repo string, f OverlapFilter, q Query,
) (ledger.Page[ledger.RadarPair], error) {
	return page[ledger.RadarPair](ctx, c, pathOf("orgs", org, "repos", repo, "radar"), f.query(), q)
}

// PreviewOverlaps tells what a commit would overlap with if it were registered now.
// Nothing is written.
func (c *Client) PreviewOverlaps(
	ctx context.Context, org, repo string, q ledger.RadarQuery,
) (ledger.RadarResult, error) {
	return post[ledger.RadarResult](ctx, c, pathOf("orgs", org, "repos", repo, "radar"), q)
}

// Withdraw takes a commit out of flight, which may be named by a unique prefix
// of at least 7 digits: its branch is given up. Twice does no harm.
func (c *Client) Withdraw(ctx context.Context, org, repo, sha string) (ledger.Commit, error) {
	commit, _, err := call[ledger.Commit](ctx, c, request{
		method: http.MethodPost,
		path:   pathOf("orgs", org, "repos", repo, "commits", sha, "withdraw"),
	})
	return commit, err
}
