package gitrepo

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// ciClone returns a clone like those of CI: it has the given branches of the remote,
// but no remote HEAD.
func (f forest) ciClone(refs ...string) Repo {
	f.t.Helper()
	clone := Repo{Dir: filepath.Join(f.t.TempDir(), "clone")}
	mustGit(f.t, f.Repo, "", "init", "--quiet", "--initial-branch=work", clone.Dir)
	mustGit(f.t, clone, "", "remote", "add", "origin", "file://"+filepath.ToSlash(f.Forest.Dir))
	for _, ref := range refs {
		mustGit(f.t, clone, "", "fetch", "--quiet", "--no-tags", "origin", "+refs/heads/"+ref+":refs/remotes/origin/"+ref)
	}
	return clone
}

// Without a remote HEAD, the mainline is the ledger's default branch, else the
// target. A branch in flight that others build on is not a mainline, and its commits
// have not landed.
func TestGitMainline(t *testing.T) {
	f := newForest(t)
	root := f.Commit("file", gitPoem)
	f.Git("branch", "--move", "trunk")
	landed := f.Branch("landed", "trunk", "landed.txt", "x\n")
	f.Git("merge", "--quiet", "--no-ff", "--no-edit", "landed")
	fork := f.Commit("trunk.txt", "x\n")
	one := f.Branch("one", "trunk", "one.txt", "1\n")
	two := f.Branch("two", "one", "two.txt", "2\n")
	three := f.Branch("three", "two", "three.txt", "3\n")
	fix := f.Branch("fix", root, "fix.txt", "x\n")
	f.Git("checkout", "--quiet", "-b", "release/1", root)
	f.Git("merge", "--quiet", "--no-ff", "--no-edit", "fix")
	released := f.Git("rev-parse", "HEAD")
	onRelease := f.Branch("on-release", "release/1", "on-release.txt", "x\n")
	f.Git("checkout", "--quiet", "trunk")
	f.Commit("later.txt", "x\n")

	tips := []ledger.CommitSummary{
		{SHA: landed, Target: "trunk"}, {SHA: one, Target: "trunk"}, {SHA: two, Target: "one"},
		{SHA: fix, Target: "release/1"},
	}
	trunk := func() (string, error) { return "trunk", nil }
	all, none := f.ciClone("*"), []string(nil)
	for name, test := range map[string]struct {
		clone     Repo
		query     Query
		base      string
		ancestors []string
		changes   []string // nil: no record
		contained []string
	}{
		"the ledger's default branch": {all, Query{Rev: two}, fork, []string{two, one}, []string{"A one.txt", "A two.txt"},
			[]string{landed}},
		"default branch before the target": {all, Query{Rev: two, Target: "one"}, fork, []string{two, one},
			[]string{"A one.txt", "A two.txt"}, []string{landed}},
		"--base on a branch in flight": {all, Query{Rev: three, Base: two}, two, []string{three, two, one},
			[]string{"A three.txt"}, none},
		"--base before the mainline": {all, Query{Rev: one, Base: root}, root, nil,
			[]string{"A landed.txt", "A one.txt", "A trunk.txt"}, none},
		"--base on the target": {
			all, Query{Rev: onRelease, Target: "release/1", Base: "origin/release/1"}, released, nil,
			[]string{"A on-release.txt"}, []string{fix}},
		"no mainline but the target": {f.ciClone("release/1", "on-release"), Query{Rev: onRelease, Target: "release/1"},
			released, []string{onRelease}, []string{"A on-release.txt"}, []string{fix}},
		"no mainline but the target of a stacked branch": {f.ciClone("one", "two"), Query{Rev: two, Target: "one"},
			one, []string{two}, []string{"A two.txt"}, none},
		"no mainline": {f.ciClone("one", "two"), Query{Rev: two}, "", []string{}, nil, none},
		"no mainline but --base": {f.ciClone("one", "two"), Query{Rev: two, Base: fork}, fork, []string{two, one},
			[]string{"A one.txt", "A two.txt"}, none},
		"no mainline, first commit": {f.ciClone("fix"), Query{Rev: root}, "", []string{root}, []string{"A file"}, none},
		"a commit on the mainline": {f.ciClone("one"), Query{Rev: fork, Branch: "trunk"}, fork + "^", []string{fork},
			[]string{"A trunk.txt"}, []string{landed}},
	} {
		t.Run(name, func(t *testing.T) {
			test.query.DefaultBranch = trunk
			got, err := test.clone.ReadCommit(t.Context(), test.query)
			must.OK(t, err)
			base := test.base
			if base != "" {
				base = f.Git("rev-parse", base)
			}
			if got.Base != base || test.ancestors != nil && !slices.Equal(got.Ancestors, test.ancestors) {
				t.Errorf("base %q, ancestors %q, want %q and %q", got.Base, got.Ancestors, base, test.ancestors)
			}
			if (got.Changes == nil) != (test.changes == nil) || !slices.Equal(outline(got.Changes), test.changes) {
				t.Errorf("changes %q, want %q", outline(got.Changes), test.changes)
			}
			if (got.ChangesErr == errMainline) != (test.changes == nil) {
				t.Errorf("ChangesErr is %v", got.ChangesErr)
			}
			if contained := test.clone.Landed(t.Context(), got, tips); !slices.Equal(contained, test.contained) {
				t.Errorf("landed: %q, want %q", contained, test.contained)
			}
		})
	}
}
