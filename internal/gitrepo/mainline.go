package gitrepo

import (
	"cmp"
	"context"
	"strings"
)

// A mainline is the branch that others are merged into.
type mainline struct {
	// trunk is its latest commit in this clone, empty if it has none.
	trunk string
	// forkRef is the commit that the merge base is computed against. It is on the
	// branch that Query.Base names, else on the mainline or the target.
	forkRef string
}

// mainline returns the mainline of a commit.
func (g Repo) mainline(ctx context.Context, sha string, q Query) (mainline, error) {
	m, err := g.detectMainline(ctx, sha, q)
	if err != nil || q.Base == "" && q.BaseBranch == "" {
		return m, err
	}
	if q.Base == "" {
		ref := remoteBranch + q.BaseBranch
		tips, err := g.tips(ctx, ref)
		m.forkRef = cmp.Or(tips[ref], m.forkRef)
		return m, err
	}
	m.forkRef, err = g.existingCommit(ctx, q.Base)
	return m, err
}

// detectMainline returns the mainline without regard to Query.Base. It is the
// remote's HEAD branch, else the default branch in the ledger. Clones of CI often
// lack the remote's HEAD. If a clone has neither, the merge base is computed
// against the target.
func (g Repo) detectMainline(ctx context.Context, sha string, q Query) (m mainline, err error) {
	const head = remoteBranch + "HEAD"
	tips, err := g.tips(ctx, head)
	if err != nil || tips[head] != "" {
		return mainline{tips[head], tips[head]}, err
	}

	name := "main"
	if q.DefaultBranch != nil {
		if name, err = q.DefaultBranch(); err != nil {
			return m, err
		}
	}
	candidates := []string{
		remoteBranch + name, remoteBranch + "main", remoteBranch + "master",
		localBranch + name, localBranch + "main", localBranch + "master",
	}
	target := remoteBranch + cmp.Or(q.Target, name)
	if tips, err = g.tips(ctx, append(candidates, target)...); err != nil {
		return m, err
	}

	for _, ref := range candidates {
		m.trunk = cmp.Or(m.trunk, tips[ref])
	}
	if m.trunk == "" && q.Branch == name {
		m.trunk = sha // the clone has no later one
	}
	m.forkRef = cmp.Or(tips[remoteBranch+name], tips[target], m.trunk)
	return m, nil
}

// tips returns the commits of the refs that exist, by ref.
func (g Repo) tips(ctx context.Context, refs ...string) (map[string]string, error) {
	out, err := g.Read(ctx, append([]string{"for-each-ref", "--format=%(refname) %(objectname)"}, refs...)...)
	if err != nil {
		return nil, err
	}
	tips := make(map[string]string)
	for line := range strings.Lines(out) {
		ref, tip, _ := strings.Cut(strings.TrimSpace(line), " ")
		tips[ref] = tip
	}
	return tips, nil
}

// base returns the merge base of the commit and the branch with this tip. If the
// commit is on that branch, it is the first parent. It is empty if the two are not related.
func (g Repo) base(ctx context.Context, sha string, parents []string, tip string) (string, error) {
	base := tip
	if tip != "" && tip != sha {
		var err error
		if base, err = g.line(ctx, "merge-base", tip, sha); err != nil {
			return "", err
		}
	}
	if base == sha {
		base = ""
		if len(parents) > 0 {
			base = parents[0]
		}
	}
	return base, nil
}

// branch returns the branch of rev: rev itself if it names a branch, else the
// current branch if that contains it. Otherwise it is empty.
func (g Repo) branch(ctx context.Context, rev, sha string) (string, error) {
	name, err := g.line(ctx, "rev-parse", "--symbolic-full-name", "--verify", "--quiet", rev)
	if err != nil {
		return "", err
	}
	if branch, ok := strings.CutPrefix(name, localBranch); ok {
		return branch, nil
	}
	if remote, ok := strings.CutPrefix(name, "refs/remotes/"); ok {
		_, branch, _ := strings.Cut(remote, "/")
		return branch, nil
	}

	current, err := g.line(ctx, "symbolic-ref", "--quiet", "HEAD")
	if err != nil || current == "" {
		return "", err
	}
	if !g.contains(ctx, "HEAD", sha) {
		return "", nil // also if HEAD has no commit yet
	}
	return strings.TrimPrefix(current, localBranch), nil
}
