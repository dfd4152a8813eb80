package gitrepo

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
)

func TestContained(t *testing.T) {
	f := newForest(t)
	numbers := "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	old := f.Commit("file", numbers)
	merged := f.Branch("merged", "main", "merged.txt", "merged\n")
	f.Branch("squashed", "main", "squashed.txt", "one\n")
	f.Git("checkout", "--quiet", "squashed")
	squashed := f.Commit("squashed.txt", "two\n")
	f.Git("checkout", "--quiet", "main")
	picked := f.Branch("picked", "main", "file", strings.Replace(numbers, "2\n", "two\n", 1))
	open := f.Branch("open", "main", "file", strings.Replace(numbers, "8\n", "eight\n", 1))
	conflicting := f.Branch("conflicting", "main", "file", strings.Replace(numbers, "2\n", "zwei\n", 1))
	partly := f.Branch("partly", "picked", "more.txt", "more\n")

	f.Git("merge", "--quiet", "--no-ff", "--no-edit", "merged")
	f.Git("merge", "--quiet", "--squash", "squashed")
	f.Git("commit", "--quiet", "--message", "squashed")
	f.Git("cherry-pick", "picked")
	base := f.Commit("later", "later\n")
	ahead := f.Branch("ahead", "main", "ahead.txt", "ahead\n")

	f.Git("checkout", "--quiet", "--orphan", "stranger")
	stranger := f.Commit("stranger", "stranger\n")
	f.Git("checkout", "--quiet", "main")

	tips := []string{stranger, ahead, partly, conflicting, open, picked, squashed, merged, old, base,
		strings.Repeat("0", 40), strings.Repeat("a", 40), f.Git("rev-parse", "HEAD^{tree}"), f.Git("rev-parse", "HEAD:file")}
	want := []string{picked, squashed, merged, old, base}
	objects := countObjects(t, f.Forest.Dir)
	if got := f.contained(t.Context(), base, tips); !slices.Equal(got, want) {
		t.Errorf("contained: %q, want %q of %q", got, want, tips)
	}
	if after := countObjects(t, f.Forest.Dir); after != objects {
		t.Errorf("the repository has %d more objects", after-objects)
	}
	if got := f.contained(t.Context(), old, tips); !slices.Equal(got, []string{old}) {
		t.Errorf("the first commit contains %q", got)
	}
	for name, tips := range map[string][]string{"no tips": nil, "a missing tip": {strings.Repeat("1", 40)}} {
		if got := f.contained(t.Context(), base, tips); len(got) != 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := f.contained(t.Context(), strings.Repeat("1", 40), tips); len(got) != 0 {
		t.Errorf("a missing base contains %q", got)
	}

	// A shallow clone finds fewer tips, but no wrong ones.
	clone := cloneGitRepo(t, f.Repo, "--depth=3", "--no-single-branch")
	got := clone.contained(t.Context(), base, tips)
	for _, tip := range got {
		if !slices.Contains(want, tip) {
			t.Errorf("shallow clone: %s is reported as contained", tip)
		}
	}
	if !slices.Contains(got, base) {
		t.Errorf("shallow clone: contained: %q", got)
	}
}

// A git without merge-tree --write-tree still finds ancestors.
func TestContainedWithAnOldGit(t *testing.T) {
	f := newForest(t)
	f.Commit("file", "1\n")
	picked := f.Branch("picked", "main", "picked", "x\n")
	first := f.Commit("other", "1\n")
	f.Git("cherry-pick", "picked")
	base := f.Git("rev-parse", "HEAD")
	tips := []string{picked, first}
	if got := f.contained(t.Context(), base, tips); !slices.Equal(got, tips) {
		t.Errorf("%q, want %q", got, tips)
	}

	if runtime.GOOS == "windows" {
		t.Skip("the rest replaces git with a shell script")
	}
	bin := t.TempDir()
	real, err := exec.LookPath("git")
	must.OK(t, err)
	gitrepotest.WriteFile(t, filepath.Join(bin, "git"), "#!/bin/sh\ncase \" $* \" in *' merge-tree --write-tree '*) "+
		"exit 129;; esac\nexec "+real+" \"$@\"\n")
	must.OK(t, os.Chmod(filepath.Join(bin, "git"), 0o755))
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	if got := f.contained(t.Context(), base, tips); !slices.Equal(got, []string{first}) {
		t.Errorf("%q, want %q", got, first)
	}
}

func countObjects(t *testing.T, dir string) int {
	t.Helper()
	files := must.Get(filepath.Glob(filepath.Join(dir, ".git", "objects", "*", "*")))(t)
	return len(files)
}
