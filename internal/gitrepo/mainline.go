package gitrepo

import (
	"cmp"
	"context"
	"strings"
)

// A mainline is the branch that others are merged into.
type mainline struct {
	// trunk is its last commit as far as this clone knows, empty where that
	// knows of none.
	trunk string
	// left is the commit that a base is told against: of the branch that was
	// named, else of the mainline, or of the branch that the commit is meant for.
	left string
}

// mainline returns the mainline of a commit.
func (g Repo) mainline(ctx context.Context, sha string, q Query) (mainline, error) {
	m, err := g.usualMainline(ctx, sha, q)
	if err != nil || q.Base == "" {
		return m, err
	}
	m.left, err = g.mustCommit(ctx, q.Base)
	return m, err
}

// usualMainline returns the mainline where nobody names one. It is the remote's
// HEAD branch, else the one that the ledger takes for the default. A clone that
// CI made often knows no HEAD of its remote, and one that fetched little may know
// neither: then the branch that the commit is meant for serves for its base.
func (g Repo) usualMainline(ctx context.Context, sha string, q Query) (m mainline, err error) {
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
	usual := []string{
		remoteBranch + name, remoteBranch + "main", remoteBranch + "master",
		localBranch + name, localBranch + "main", localBranch + "master",
	}
	target := remoteBranch + cmp.Or(q.Target, name)
	if tips, err = g.tips(ctx, append(usual, target)...); err != nil {
		return m, err
	}
	for _, ref := range usual {
		m.trunk = cmp.Or(m.trunk, tips[ref])
	}
	if m.trunk == "" && q.Branch == name {
		m.trunk = sha // nobody here knows of a later one
	}
	m.left = cmp.Or(tips[remoteBranch+name], tips[target], m.trunk)
	return m, nil
}

// tips returns the commits that the refs stand on, those that are there.
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

// base returns where the commit left a branch with the given tip; of a commit on
// that branch its first parent, and nothing where there is neither.
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

// branch returns the branch that rev stands on: itself where it names one, the
// current one where that holds it, else none.
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
	if !g.holds(ctx, "HEAD", sha) {
		return "", nil // nor where it has no commit yet
	}
	return strings.TrimPrefix(current, localBranch), nil
}
