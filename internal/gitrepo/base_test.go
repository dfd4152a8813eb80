package gitrepo

import (
	"slices"
	"testing"
)

// The change record covers a branch from its merge base, even if it merged the
// mainline since or was merged itself.
func TestGitBase(t *testing.T) {
	f := newForest(t)
	first := f.Commit("file", gitPoem)
	f.Branch("topic", "main", "topic.txt", "x\n")
	onMain := f.Commit("main.txt", "main\n")
	f.Git("checkout", "--quiet", "topic")
	f.Git("merge", "--quiet", "--no-edit", "main")
	merge := f.Git("rev-parse", "HEAD")
	last := f.Commit("topic.txt", "y\n")
	f.Git("checkout", "--quiet", "main")
	later := f.Commit("later.txt", "later\n")
	f.Git("checkout", "--quiet", "-b", "release", first)
	f.Commit("release.txt", "release\n")
	f.Git("checkout", "--quiet", "main")
	f.Git("merge", "--quiet", "--no-edit", "-s", "ours", "release")
	f.Git("update-ref", "refs/remotes/origin/topic", last)

	check := func(name, rev, mainline, base string, want ...string) {
		t.Helper()
		r, err := f.ReadCommit(t.Context(), Query{Rev: rev, Base: mainline})
		if got := outline(r.Changes); err != nil || r.Base != base || !slices.Equal(got, want) {
			t.Errorf("%s: base %q, changes %q (%v), want %q and %q", name, r.Base, got, err, base, want)
		}
	}
	check("a branch that merged the mainline", "topic", "", onMain, "A topic.txt")
	check("the merge commit", merge, "", onMain, "A topic.txt")
	check("against another mainline", "topic", "release", first, "A main.txt", "A topic.txt")
	check("a commit of the mainline", later, "", onMain, "A later.txt")
	check("a merge on the mainline", "main", "", later)
	check("a branch that was merged", "release", "", first, "A release.txt")
	check("the first commit", first, "", "", "A file")
	check("a mainline by its sha", last, merge, merge, "M topic.txt [1,1 +1 ]")

	f.Git("update-ref", "refs/remotes/origin/main", first)
	check("the remote's main takes precedence over the local one", "main", "", first, "A later.txt", "A main.txt")
	f.Git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/nothing")
	check("a dangling remote HEAD", "main", "", first, "A later.txt", "A main.txt")
	f.Git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/topic")
	check("the remote's HEAD takes precedence over main", later, "", onMain, "A later.txt")
	check("--base takes precedence over the remote's HEAD", later, first, first, "A later.txt", "A main.txt")
	if _, err := f.ReadCommit(t.Context(), Query{Rev: "main", Base: "nowhere"}); err == nil {
		t.Error("a base that does not exist is accepted")
	}
}
