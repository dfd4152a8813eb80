package gitrepo

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// A hostedRepo is a repository as a forge has it, with a pull request from feature to main
// and the merge commit that the forge created for it.
type hostedRepo struct {
	forest
	base, head, merge, tip string
}

// newHostedRepo returns a repository in which main has the given number of commits since
// the base, and feature has two.
func newHostedRepo(t *testing.T, since int) hostedRepo {
	t.Helper()
	h := hostedRepo{forest: newForest(t)}
	h.Commit("file", gitPoem)
	h.base = h.Commit("base.txt", "base\n")
	h.Forest.Branch("feature", "main", "one.txt", "1\n")
	h.Git("checkout", "--quiet", "feature")
	h.head = h.Commit("two.txt", "2\n")
	h.Git("checkout", "--quiet", "main")

	var in strings.Builder
	for i := range since {
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter Ada <ada@example.org> %d +0000\ndata 2\nx\n\n", 1700000000+i)
		if i == 0 {
			fmt.Fprintf(&in, "from %s\n", h.base)
		}
		fmt.Fprintf(&in, "M 100644 inline later.txt\ndata %d\n%d\n\n", len(strconv.Itoa(i)), i)
	}
	gitrepotest.Git(t, h.Forest.Dir, in.String(), "fast-import", "--quiet", "--force")
	h.Git("reset", "--quiet", "--hard")
	h.tip = h.Git("rev-parse", "main")

	h.Git("checkout", "--quiet", "--detach", "main")
	h.Git("merge", "--quiet", "--no-ff", "--no-edit", "feature")
	h.merge = h.Git("rev-parse", "HEAD")
	h.Git("checkout", "--quiet", "main")
	h.Git("update-ref", "refs/pull/1/merge", h.merge)
	h.Git("update-ref", "refs/pull/1/head", h.head)
	return h
}

// clone returns a clone with the result of git fetch with the given arguments.
func (h hostedRepo) clone(fetch ...string) Repo {
	h.t.Helper()
	clone := h.ciClone()
	mustGit(h.t, clone, "", append([]string{"fetch", "--quiet", "--no-tags", "origin"}, fetch...)...)
	return clone
}

// A shallow clone of CI gets as much history as the change record needs. The record is the
// same as in a full clone.
func TestFetchedHistory(t *testing.T) {
	near := newHostedRepo(t, 20)
	type layout struct {
		hosted hostedRepo
		fetch  []string
		query  Query
		most   int // commits in the clone afterwards
	}
	layouts := map[string]layout{
		"a pull request's merge commit": {near, []string{"--depth=1", "+refs/pull/1/merge:refs/remotes/pull/1/merge"},
			Query{Branch: "feature", BaseBranch: "main"}, 25},
		"a branch with 20 commits": {near, []string{"--depth=20", "+refs/heads/feature:refs/remotes/origin/feature"},
			Query{Branch: "feature", Target: "main"}, 24},
		"a base by name": {near, []string{"--depth=1", "refs/heads/feature"}, Query{Base: "origin/main"}, 24},
	}
	if testenv.CurrentLevel() >= testenv.Push {
		far := newHostedRepo(t, 700)
		maps.Copy(layouts, map[string]layout{
			"a branch": {near, []string{"--depth=1", "+refs/heads/feature:refs/remotes/origin/feature"},
				Query{Branch: "feature"}, 24},
			"a branch, all of it":     {near, []string{"+refs/heads/feature:refs/remotes/origin/feature"}, Query{}, 24},
			"a target that is gone":   {near, []string{"--depth=1", "+refs/pull/1/merge:refs/x"}, Query{BaseBranch: "gone"}, 25},
			"a mainline that went on": {far, []string{"--depth=1", "refs/heads/feature"}, Query{BaseBranch: "main"}, 704},
		})
	}
	for name, test := range layouts {
		t.Run(name, func(t *testing.T) {
			full := test.hosted.clone("+refs/heads/*:refs/remotes/origin/*")
			want, err := full.ReadCommit(t.Context(), Query{Rev: test.hosted.head})
			if err != nil || want.Base != test.hosted.base || len(want.Changes) != 2 {
				t.Fatalf("a full clone has the base %.12s and %d changes: %v", want.Base, len(want.Changes), err)
			}
			clone := test.hosted.clone(test.fetch...)
			test.query.Rev = test.hosted.head
			before, err := clone.ReadCommit(t.Context(), test.query)
			if err == nil && before.ChangesErr == nil {
				t.Error("there is a change record without fetching anything")
			}

			test.query.Fetch = true
			got, err := clone.ReadCommit(t.Context(), test.query)
			if err != nil || got.ChangesErr != nil {
				t.Fatal(err, got.ChangesErr)
			}
			if got.Base != want.Base || !slices.Equal(outline(got.Changes), outline(want.Changes)) ||
				!slices.Equal(got.Ancestors, want.Ancestors) {
				t.Errorf("base %.12s, changes %q, ancestors %d", got.Base, outline(got.Changes), len(got.Ancestors))
			}
			if n, _ := strconv.Atoi(mustGit(t, clone, "", "rev-list", "--all", "--count")); n > test.most {
				t.Errorf("the clone has %d commits, want at most %d", n, test.most)
			}
		})
	}
}

// The changes of a pull request to another branch are relative to that branch, which is
// fetched.
func TestFetchedTarget(t *testing.T) {
	h := newHostedRepo(t, 3)
	stacked := h.Forest.Branch("stacked", "feature", "three.txt", "3\n")
	clone := h.clone("--depth=1", "+refs/heads/stacked:refs/remotes/origin/stacked")
	for _, test := range []struct{ target, base string }{ // the last one when nothing else is missing
		{"main", h.base}, {"gone", h.base}, {"feature", h.head},
	} {
		target, want := test.target, test.base
		c, err := clone.ReadCommit(t.Context(), Query{Rev: stacked, Target: target, BaseBranch: target, Fetch: true})
		if err != nil || c.ChangesErr != nil || c.Base != want {
			t.Errorf("for %s: base %.12s, want %.12s: %v, %v", target, c.Base, want, err, c.ChangesErr)
		}
	}

	fresh := h.clone("--depth=1", "+refs/heads/stacked:refs/remotes/origin/stacked")
	c, err := fresh.ReadCommit(t.Context(), Query{Rev: stacked, BaseBranch: "feature", Fetch: true})
	if err != nil || !slices.Equal(outline(c.Changes), []string{"A three.txt"}) {
		t.Errorf("changes %q: %v", outline(c.Changes), err)
	}
}

// A long history is fetched in steps, and only as far as necessary.
func TestFetchedHistoryIsBounded(t *testing.T) {
	h := newHostedRepo(t, 700)
	h.Forest.Branch("late", "main~3", "late.txt", "1\n")
	h.Git("checkout", "--quiet", "late")
	late := h.Commit("later.txt", "2\n")
	h.Git("checkout", "--quiet", "main")
	branch := h.clone("--depth=1", "+refs/heads/late:refs/remotes/origin/late")
	onBranch, err := branch.ReadCommit(t.Context(), Query{Rev: late, Branch: "late", Fetch: true})
	if err != nil || onBranch.ChangesErr != nil || len(onBranch.Changes) != 2 {
		t.Error(err, onBranch.ChangesErr, onBranch.Changes)
	}
	if n, _ := strconv.Atoi(mustGit(t, branch, "", "rev-list", "--count", "--all")); n < 4 || n > 128 {
		t.Errorf("the clone of a branch has %d commits", n)
	}

	clone := h.clone("--depth=1", "+refs/heads/main:refs/remotes/origin/main")
	got, err := clone.ReadCommit(t.Context(), Query{Rev: h.tip, Branch: "main", Fetch: true})
	if err != nil || got.ChangesErr != nil || len(got.Changes) != 1 {
		t.Fatal(err, got.ChangesErr, got.Changes)
	}
	if n, _ := strconv.Atoi(mustGit(t, clone, "", "rev-list", "--count", h.tip)); n < 2 || n > 128 {
		t.Errorf("the clone has %d commits of main", n)
	}
}

// Without Fetch, and outside a shallow clone that lacks something, nothing is fetched.
func TestNothingIsFetchedUnasked(t *testing.T) {
	h := newHostedRepo(t, 3)
	clone := h.clone("--depth=1", "+refs/heads/feature:refs/remotes/origin/feature")
	if c, err := clone.ReadCommit(t.Context(), Query{Rev: h.head}); err != nil || c.ChangesErr == nil {
		t.Error(err, c.ChangesErr)
	}
	full := h.clone("+refs/heads/*:refs/remotes/origin/*")
	mustGit(t, full, "", "remote", "set-url", "origin", "https://127.0.0.1:1/gone")
	if c, err := full.ReadCommit(t.Context(), Query{Rev: h.head, Fetch: true}); err != nil || c.ChangesErr != nil {
		t.Error(err, c.ChangesErr)
	}
	if refs := mustGit(t, clone, "", "for-each-ref", "--format=%(refname)"); refs != "refs/remotes/origin/feature" {
		t.Errorf("the clone has %q", refs)
	}
}

// If fetching fails, the error has both what is missing and why.
func TestFetchFault(t *testing.T) {
	h := newHostedRepo(t, 3)
	clone := h.clone("--depth=1", "+refs/heads/feature:refs/remotes/origin/feature")
	mustGit(t, clone, "", "remote", "set-url", "origin", filepath.Join(h.Forest.Dir, "gone"))
	c, err := clone.ReadCommit(t.Context(), Query{Rev: h.head, Fetch: true})
	const why = "and fetching it failed: git ls-remote: "
	if err != nil || c.ChangesErr == nil || !strings.Contains(c.ChangesErr.Error(), why) {
		t.Error(err, c.ChangesErr)
	}
	_, err = clone.ReadCommit(t.Context(), Query{Rev: h.tip, Fetch: true})
	if err == nil || !strings.Contains(err.Error(), "not found in this git repository, and fetching it failed: ") {
		t.Error(err)
	}
	if err := clone.FetchCommit(t.Context(), h.tip); err == nil {
		t.Error("a commit was fetched from nowhere")
	}
}

// Fetching runs no hooks, no transport that is a command, and ends when it is canceled.
func TestFetchRunsNoCommandFault(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	h := newHostedRepo(t, 3)
	pwned := filepath.Join(t.TempDir(), "pwned")
	clone := h.clone("--depth=1", "+refs/heads/feature:refs/remotes/origin/feature")
	hook := filepath.Join(clone.Dir, ".git", "hooks", "reference-transaction")
	gitrepotest.WriteFile(t, hook, "#!/bin/sh\ntouch "+pwned+"\n")
	must.OK(t, os.Chmod(hook, 0o755))
	if c, err := clone.ReadCommit(t.Context(), Query{Rev: h.head, Fetch: true}); err != nil || c.ChangesErr != nil {
		t.Error(err, c.ChangesErr)
	}
	mustGit(t, clone, "", "config", "core.hooksPath", os.DevNull)
	mustGit(t, clone, "", "config", "protocol.ext.allow", "always")
	mustGit(t, clone, "", "remote", "set-url", "origin", "ext::touch "+pwned)
	if err := clone.FetchCommit(t.Context(), h.merge); err == nil || !strings.Contains(err.Error(), "'ext' not allowed") {
		t.Error(err)
	}
	if _, err := os.Stat(pwned); err == nil {
		t.Error("a command of the clone was run")
	}

	mustGit(t, clone, "", "remote", "set-url", "origin", "ssh://git@127.0.0.1:1/x")
	mustGit(t, clone, "", "config", "core.sshCommand", "sleep 60; true")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- clone.FetchCommit(ctx, h.merge) }()
	select {
	case err := <-done:
		if err == nil {
			t.Error("a canceled fetch succeeded")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("a canceled fetch did not end")
	}
}

// FetchCommit gets one commit of a shallow clone, and no more.
func TestFetchCommit(t *testing.T) {
	h := newHostedRepo(t, 30)
	clone := h.clone("--depth=1", "+refs/pull/1/merge:refs/remotes/pull/1/merge")
	must.OK(t, clone.FetchCommit(t.Context(), h.head))
	c, err := clone.Describe(t.Context(), h.head)
	if err != nil || c.SHA != h.head || c.Object == nil {
		t.Error(c, err)
	}
	if n := mustGit(t, clone, "", "rev-list", "--count", h.head); n != "1" {
		t.Errorf("the clone has %s commits of the branch", n)
	}
}
