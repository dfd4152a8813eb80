package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A forest is a repository in which branches come and go.
type forest struct {
	gitRepo
	t *testing.T
}

func newForest(t *testing.T) forest {
	useNoGitConfig(t)
	f := forest{gitRepo{dir: t.TempDir()}, t}
	f.git("init", "--quiet", "--initial-branch=main")
	return f
}

func (f forest) git(args ...string) string {
	f.t.Helper()
	return mustGit(f.t, f.gitRepo, "", args...)
}

// commit writes a file and commits all there is.
func (f forest) commit(name, content string) string {
	f.t.Helper()
	writeTestFile(f.t, filepath.Join(f.dir, name), content)
	f.git("add", "--all")
	f.git("commit", "--quiet", "--message", name)
	return f.git("rev-parse", "HEAD")
}

// branch makes a branch from another one, with one file changed, and returns to
// where it was.
func (f forest) branch(branch, from, name, content string) string {
	f.t.Helper()
	f.git("checkout", "--quiet", "-b", branch, from)
	defer f.git("checkout", "--quiet", "-")
	return f.commit(name, content)
}

func TestContained(t *testing.T) {
	f := newForest(t)
	numbers := "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	old := f.commit("file", numbers)
	merged := f.branch("merged", "main", "merged.txt", "merged\n")
	f.branch("squashed", "main", "squashed.txt", "one\n")
	f.git("checkout", "--quiet", "squashed")
	squashed := f.commit("squashed.txt", "two\n")
	f.git("checkout", "--quiet", "main")
	picked := f.branch("picked", "main", "file", strings.Replace(numbers, "2\n", "two\n", 1))
	open := f.branch("open", "main", "file", strings.Replace(numbers, "8\n", "eight\n", 1))
	conflicting := f.branch("conflicting", "main", "file", strings.Replace(numbers, "2\n", "zwei\n", 1))
	partly := f.branch("partly", "picked", "more.txt", "more\n")

	f.git("merge", "--quiet", "--no-ff", "--no-edit", "merged")
	f.git("merge", "--quiet", "--squash", "squashed")
	f.git("commit", "--quiet", "--message", "squashed")
	f.git("cherry-pick", "picked")
	base := f.commit("later", "later\n")
	ahead := f.branch("ahead", "main", "ahead.txt", "ahead\n")

	f.git("checkout", "--quiet", "--orphan", "stranger")
	stranger := f.commit("stranger", "stranger\n")
	f.git("checkout", "--quiet", "main")

	everywhere := []string{stranger, ahead, partly, conflicting, open, picked, squashed, merged, old, base,
		strings.Repeat("0", 40), strings.Repeat("a", 40), f.git("rev-parse", "HEAD^{tree}"), f.git("rev-parse", "HEAD:file")}
	want := []string{picked, squashed, merged, old, base}
	objects := countObjects(t, f.dir)
	if got := f.contained(t.Context(), base, everywhere); !slices.Equal(got, want) {
		t.Errorf("%q, want %q of %q", got, want, everywhere)
	}
	if left := countObjects(t, f.dir); left != objects {
		t.Errorf("the repository has %d objects more", left-objects)
	}
	if got := f.contained(t.Context(), old, everywhere); !slices.Equal(got, []string{old}) {
		t.Errorf("the first commit contains %q", got)
	}
	for name, tips := range map[string][]string{"no tips": nil, "one that is not here": {strings.Repeat("1", 40)}} {
		if got := f.contained(t.Context(), base, tips); len(got) != 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := f.contained(t.Context(), strings.Repeat("1", 40), everywhere); len(got) != 0 {
		t.Errorf("a base that is not here contains %q", got)
	}

	// A shallow clone tells less, and nothing wrong.
	clone := cloneGitRepo(t, f.gitRepo, "--depth=3", "--no-single-branch")
	got := clone.contained(t.Context(), base, everywhere)
	for _, tip := range got {
		if !slices.Contains(want, tip) {
			t.Errorf("a shallow clone finds %s contained", tip)
		}
	}
	if !slices.Contains(got, base) {
		t.Errorf("a shallow clone finds only %q", got)
	}
}

// A git that cannot merge trees knows of ancestors all the same.
func TestContainedWithAnOldGit(t *testing.T) {
	f := newForest(t)
	f.commit("file", "1\n")
	picked := f.branch("picked", "main", "picked", "x\n")
	first := f.commit("other", "1\n")
	f.git("cherry-pick", "picked")
	base := f.git("rev-parse", "HEAD")
	tips := []string{picked, first}
	if got := f.contained(t.Context(), base, tips); !slices.Equal(got, tips) {
		t.Errorf("%q, want %q", got, tips)
	}

	if runtime.GOOS == "windows" {
		t.Skip("the rest needs a shell script in place of git")
	}
	bin := t.TempDir()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	writeTestFile(t, filepath.Join(bin, "git"), "#!/bin/sh\ncase \" $* \" in *' merge-tree --write-tree '*) exit 129;; esac\nexec "+real+" \"$@\"\n")
	if err := os.Chmod(filepath.Join(bin, "git"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	if got := f.contained(t.Context(), base, tips); !slices.Equal(got, []string{first}) {
		t.Errorf("%q, want %q", got, first)
	}
}

func countObjects(t *testing.T, dir string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, ".git", "objects", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}
