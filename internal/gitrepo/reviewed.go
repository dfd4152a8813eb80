package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
)

// A Range is what a review of a commit is about: the commits that it has and its base has not.
type Range struct {
	Base, Commit string
	// Commits are those between, newest first.
	Commits []RangeCommit
}

// A RangeCommit is a commit of a Range.
type RangeCommit struct{ SHA, Author, Subject string }

// Reviewed returns what a review of a commit is about. Its base is the merge base of the commit and the branch
// q.Target of the remote, or the local branch if the clone has no other; without a target, it is the branch of origin's
// HEAD, or main. q.Base, a revision, takes precedence; with q.From, the base is that commit, an ancestor. Without a
// single base below the commit, or if the clone may lack commits of the range, it is an error that says why.
func (g Repo) Reviewed(ctx context.Context, q Query) (r Range, err error) {
	if exists, err := g.Exists(ctx); err != nil || !exists {
		return r, cmp.Or(err, errors.New("this folder is in no git work tree"))
	}
	if r.Commit, err = g.existingCommit(ctx, q.Rev); err != nil {
		return r, err
	}
	if r.Base, err = g.reviewedSince(ctx, r.Commit, q); err != nil {
		return r, err
	}
	r.Commits, err = g.between(ctx, r.Base, r.Commit)
	return r, err
}

// reviewedSince returns the base of a review of a commit.
func (g Repo) reviewedSince(ctx context.Context, sha string, q Query) (string, error) {
	if q.From != "" {
		return g.ancestor(ctx, sha, q.From)
	}
	target, err := g.target(ctx, q)
	if err != nil {
		return "", err
	}
	return g.onlyBase(ctx, sha, target)
}

// ancestor returns the commit that a revision names, which must be below a commit.
func (g Repo) ancestor(ctx context.Context, sha, rev string) (string, error) {
	from, err := g.existingCommit(ctx, rev)
	if err != nil {
		return "", err
	}
	base, err := g.onlyBase(ctx, sha, from)
	if err == nil && base != from {
		err = fmt.Errorf("%s is not an ancestor of %s in this clone", ledger.Short(from), ledger.Short(sha))
	}
	return base, err
}

// BranchTip returns the tip of a branch of origin or, if the clone has none, of the local branch.
func (g Repo) BranchTip(ctx context.Context, branch string) (string, error) {
	return g.target(ctx, Query{Target: branch})
}

// target returns the tip of the branch that a commit is meant for.
func (g Repo) target(ctx context.Context, q Query) (string, error) {
	if q.Base != "" {
		return g.existingCommit(ctx, q.Base)
	}
	branch := cmp.Or(q.Target, "main")
	refs := []string{remoteBranch + branch, localBranch + branch}
	if q.Target == "" {
		refs = append([]string{remoteBranch + "HEAD"}, refs...)
	}
	tips, err := g.tips(ctx, refs...)
	if err != nil {
		return "", err
	}
	tip := ""
	for _, ref := range refs {
		tip = cmp.Or(tip, tips[ref])
	}
	if tip == "" {
		return "", fmt.Errorf("this clone has no branch %q (fetch it)", branch)
	}
	return tip, nil
}

// onlyBase returns the merge base of a commit and the tip of its target.
func (g Repo) onlyBase(ctx context.Context, sha, target string) (string, error) {
	out, err := g.line(ctx, noGraph, noGraphValue, "merge-base", "--all", target, sha)
	if err != nil {
		return "", err
	}
	bases := strings.Fields(out)
	switch {
	case len(bases) == 0:
		return "", fmt.Errorf("it has no common ancestor with %s in this clone", ledger.Short(target))
	case len(bases) > 1:
		return "", fmt.Errorf("it has %d merge bases with %s", len(bases), ledger.Short(target))
	case bases[0] == sha:
		return "", fmt.Errorf("%s contains it already", ledger.Short(target))
	}

	end, err := g.endAbove(ctx, bases, sha, target)
	if err != nil {
		return "", err
	}
	if end != "" {
		return "", fmt.Errorf("this shallow clone ends at %s: %w", ledger.Short(end), ErrDeepen)
	}
	return bases[0], nil
}

// between returns the commits that one has and its base has not, newest first.
func (g Repo) between(ctx context.Context, base, sha string) (commits []RangeCommit, err error) {
	out, err := g.Read(ctx, noGraph, noGraphValue, "log", "-z", "--no-show-signature", "--no-color", "--encoding=UTF-8",
		"--format=%H%n%an%n%s", base+".."+sha)
	if err != nil {
		return nil, err
	}
	for _, record := range splitNull(out) {
		fields := append(strings.SplitN(record, "\n", 3), "", "")
		commits = append(commits,
			RangeCommit{fields[0], gitobject.PlainText(fields[1]), gitobject.PlainText(fields[2])})
	}
	return commits, nil
}
