package gitrepo

import (
	"context"
	"slices"
	"strconv"

	"github.com/ledgerd/ledgerd/ledger"
)

// maxFetches limits how often origin is asked for the same commits.
const maxFetches = 32

// FetchHeads fetches the branches of origin, and those of some commits that the clone lacks and origin has. A shallow
// clone is deepened: with each further attempt, which are numbered from 0, it gets more history of the branches. It
// reports whether another attempt can bring more.
func (g Repo) FetchHeads(ctx context.Context, commits []string, attempt int) (more bool, err error) {
	boundaries, err := g.boundaries(ctx)
	if err != nil {
		return false, err
	}
	wanted, err := g.lacking(ctx, commits)
	if err != nil {
		return false, err
	}
	var options []string
	if len(boundaries) > 0 {
		depth, err := g.depth(ctx)
		if err != nil {
			return false, err
		}
		options = append(options, "--depth="+strconv.Itoa(max(depth, fetchDepths[attempt])))
		if len(boundaries) <= maxBoundaries {
			wanted = append(boundaries, wanted...) // they may be on no branch
		}
	}

	ctx, cancel := context.WithTimeout(ctx, maxFetchTime)
	defer cancel()
	branches := append(options, remoteName, "+"+localBranch+"*:"+remoteBranch+"*", "^"+localBranch+"HEAD")
	if err := g.fetch(ctx, slices.Concat(branches, wanted)...); err != nil {
		if err := g.fetch(ctx, branches...); err != nil {
			return false, err
		}
		left := maxFetches
		if err := g.fetchHalves(ctx, append(options, remoteName), wanted, &left); err != nil {
			return false, err
		}
	}
	boundaries, err = g.boundaries(ctx)
	return len(boundaries) > 0 && attempt < len(fetchDepths)-1, err
}

// lacking returns those of the commits that the clone lacks, at most maxBoundaries. It leaves out what is no ID.
func (g Repo) lacking(ctx context.Context, commits []string) (list []string, err error) {
	commits = slices.DeleteFunc(slices.Clone(commits), func(sha string) bool { return !ledger.IsCommit(sha) })
	objects, err := g.objects(ctx)
	if err != nil {
		return nil, err
	}
	defer objects.close()
	present, err := objects.present(ctx, "commit", commits)
	for _, sha := range commits {
		if !present[sha] && len(list) < maxBoundaries {
			list = append(list, sha)
		}
	}
	return list, err
}

// depth returns how many first parents of HEAD a shallow clone has, up to the last depth that is not all: to fetch with
// a lower depth would take some away.
func (g Repo) depth(ctx context.Context) (int, error) {
	most := fetchDepths[len(fetchDepths)-2]
	head, err := g.commit(ctx, "HEAD")
	if err != nil || head == "" {
		return 0, err
	}
	out, err := g.line(ctx, noGraph, noGraphValue, "rev-list", "--count", "--first-parent",
		"--max-count="+strconv.Itoa(most), head)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(out)
}

// fetchSome fetches those of the commits that origin has, with at most *left fetches: git fetches none of a list if
// origin lacks one.
func (g Repo) fetchSome(ctx context.Context, args, commits []string, left *int) error {
	if len(commits) == 0 || *left == 0 {
		return nil
	}
	*left--
	if err := g.fetch(ctx, slices.Concat(args, commits)...); err == nil || ctx.Err() != nil {
		return err
	}
	return g.fetchHalves(ctx, args, commits, left)
}

// fetchHalves is fetchSome, for a list that origin does not have as a whole.
func (g Repo) fetchHalves(ctx context.Context, args, commits []string, left *int) error {
	half := len(commits) / 2
	if half == 0 {
		return nil // origin has deleted it, or refuses to serve it
	}
	if err := g.fetchSome(ctx, args, commits[:half], left); err != nil {
		return err
	}
	return g.fetchSome(ctx, args, commits[half:], left)
}
