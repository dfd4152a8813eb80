package gitrepo

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
)

// A review is about the commits since the merge base with the target, which is that of the remote, or about the commit
// alone.
func TestReviewedCommits(t *testing.T) {
	f := newForest(t)
	first := f.Commit("file", gitPoem)
	f.Branch("topic", "main", "topic.txt", "x\n")
	f.Git("checkout", "--quiet", "topic")
	second := f.Commit("topic.txt", "y\n")
	f.Git("checkout", "--quiet", "main")
	onMain := f.Commit("main.txt", "main\n")
	f.Git("checkout", "--quiet", "-b", "updated", "topic")
	f.Git("merge", "--quiet", "--no-edit", "main")
	updated := f.Git("rev-parse", "HEAD")
	f.Git("checkout", "--quiet", "-b", "crossed", "main")
	f.Git("merge", "--quiet", "--no-edit", "topic")
	f.Git("checkout", "--quiet", "--orphan", "unrelated")
	f.Commit("alone.txt", "x\n")
	f.Git("checkout", "--quiet", "main")

	check := func(name string, q Query, base string, commits int, reason string) {
		t.Helper()
		r, err := f.Reviewed(t.Context(), q)
		if reason != "" {
			if err == nil || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: %+v, %v; want an error with %q", name, r, err, reason)
			}
			return
		}
		if err != nil || r.Base != base || len(r.Commits) != commits {
			t.Errorf("%s: %+v, %v; want %d commits since %s", name, r, err, commits, base)
		}
	}
	check("a branch", Query{Rev: "topic", Target: "main"}, first, 2, "")
	check("the default branch", Query{Rev: "topic"}, first, 2, "")
	check("a branch that was updated", Query{Rev: updated, Target: "main"}, onMain, 3, "")
	check("a branch on a branch", Query{Rev: updated, Target: "topic"}, second, 2, "")
	check("a base", Query{Rev: updated, Target: "main", Base: "topic"}, second, 2, "")
	check("a commit of the target", Query{Rev: first, Target: "main"}, "", 0, "contains it already")
	check("a criss-cross merge", Query{Rev: "crossed", Target: "updated"}, "", 0, "2 merge bases")
	check("no common ancestor", Query{Rev: "unrelated", Target: "main"}, "", 0, "no common ancestor")
	check("no such target", Query{Rev: "topic", Target: "release"}, "", 0, `no branch "release"`)
	check("no such base", Query{Rev: "topic", Base: "nowhere"}, "", 0, "not found")
	check("no such commit", Query{Rev: strings.Repeat("1", 40), Target: "main"}, "", 0, "not found")
	check("since an ancestor", Query{Rev: updated, Target: "main", From: first}, first, 4, "")
	check("since a parent that the target has not", Query{Rev: updated, Target: "main", From: second}, second, 2, "")
	check("since a branch", Query{Rev: "topic", From: "main"}, "", 0, "is not an ancestor of")
	check("since a commit on top", Query{Rev: first, From: "topic"}, "", 0, "contains it already")
	check("since itself", Query{Rev: "topic", From: "topic"}, "", 0, "contains it already")
	check("since another root", Query{Rev: "topic", From: "unrelated"}, "", 0, "no common ancestor")
	check("since nowhere", Query{Rev: "topic", From: "nowhere"}, "", 0, "not found")
	f.Git("update-ref", "refs/remotes/origin/main", first)
	check("the remote's branch", Query{Rev: updated, Target: "main"}, first, 4, "")

	r, err := f.Reviewed(t.Context(), Query{Rev: "topic", Target: "main"})
	if err != nil || r.Commits[0].SHA != second || r.Commits[0].Author == "" || r.Commits[0].Subject == "" ||
		r.Commit != second {
		t.Errorf("%+v, %v; want the newest first, with author and subject", r, err)
	}
	if _, err := (Repo{Dir: t.TempDir()}).Reviewed(t.Context(), Query{Rev: "HEAD"}); err == nil {
		t.Error("a folder that is in no work tree has a range")
	}
}

// A shallow clone has a range only if it lacks no commit of it.
func TestReviewedInShallowClone(t *testing.T) {
	f := newForest(t)
	f.Commit("file", gitPoem)
	base := f.Commit("file", "x\n")
	f.Branch("topic", "main", "topic.txt", "x\n")
	f.Branch("side", base+"~1", "side.txt", "x\n")
	f.Git("checkout", "--quiet", "topic")
	f.Git("merge", "--quiet", "--no-edit", "side")
	for depth, reason := range map[string]string{
		"1": "no common ancestor", "2": "shallow clone ends at", "3": "", "4": ""} {
		dir := t.TempDir()
		f.Git("clone", "--quiet", "--bare", "--no-single-branch", "--depth", depth, "file://"+f.Forest.Dir,
			filepath.Join(dir, ".git"))
		clone := forest{gitrepotest.Forest{Dir: dir}, Repo{Dir: dir}, t}
		r, err := clone.Reviewed(t.Context(), Query{Rev: "topic", Target: "main"})
		if (err == nil) != (reason == "") || err != nil && !strings.Contains(err.Error(), reason) {
			t.Errorf("depth %s: %+v, %v; want %q", depth, r, err, reason)
		}
		if err == nil && (r.Base != base || len(r.Commits) != 3) {
			t.Errorf("depth %s: %+v, want 3 commits since %s", depth, r, base)
		}
	}
}

// What a deployment ships is listed only in a clone that has both ends of it.
func TestSince(t *testing.T) {
	f := newForest(t)
	base := f.Commit("file", gitPoem)
	middle := f.Commit("file", "x\n")
	head := f.Commit("file", "y\n")
	f.Branch("old", base, "old.txt", "x\n")
	old := f.Git("rev-parse", "old")
	nowhere := strings.Repeat("1", 40)

	for name, test := range map[string]struct {
		in         Repo
		base, head string
		want       []string
	}{
		"all since a commit":            {f.Repo, base, head, []string{head, middle}},
		"a commit of another branch":    {f.Repo, head, old, []string{old}},
		"nothing":                       {f.Repo, head, head, nil},
		"a base that the clone lacks":   {f.Repo, nowhere, head, nil},
		"a commit that the clone lacks": {f.Repo, base, nowhere, nil},
		"a folder that is no work tree": {Repo{Dir: t.TempDir()}, base, head, nil},
	} {
		list, err := test.in.Since(t.Context(), test.base, test.head)
		if err != nil || !slices.Equal(list, test.want) {
			t.Errorf("%s: %q, %v; want %q", name, list, err, test.want)
		}
	}
}
