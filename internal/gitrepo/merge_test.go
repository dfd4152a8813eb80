package gitrepo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// A mergeForest has a branch topic, checked out from the first commit of main, and main has
// moved on. Tests merge topic into main.
type mergeForest struct{ forest }

// lines is a text in which changes at the top and at the end do not conflict.
const lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"

func newMergeForest(t *testing.T, options ...string) mergeForest {
	f := mergeForest{newForest(t)}
	if len(options) > 0 {
		must.OK(t, os.RemoveAll(filepath.Join(f.Dir(), ".git")))
		f.Git(append([]string{"init", "--quiet", "--initial-branch=main"}, options...)...)
	}
	f.Commit("a", lines)
	f.Git("branch", "topic")
	return f
}

func (f mergeForest) Dir() string { return f.Repo.Dir }

// on checks out a branch, calls change and commits everything.
func (f mergeForest) on(branch string, change func()) string {
	f.t.Helper()
	f.Git("checkout", "--quiet", branch)
	change()
	return f.commitAll(branch)
}

func (f mergeForest) commitAll(message string, options ...string) string {
	f.t.Helper()
	f.Git("add", "--all")
	f.Git(append([]string{"commit", "--quiet", "--allow-empty", "--message", message}, options...)...)
	return f.CheckedOut()
}

func (f mergeForest) write(name, content string) {
	f.t.Helper()
	gitrepotest.WriteFile(f.t, filepath.Join(f.Dir(), name), content)
}

// top and end change the first and the last line of the file a.
func (f mergeForest) top() { f.write("a", strings.Replace(lines, "1", "one", 1)) }
func (f mergeForest) end() { f.write("a", strings.Replace(lines, "9", "nine", 1)) }

// merge merges topic into main with git, and returns the commit.
func (f mergeForest) merge(args ...string) string {
	f.t.Helper()
	f.Git("checkout", "--quiet", "main")
	f.Git(append([]string{"merge", "--quiet", "--no-edit"}, args...)...)
	return f.Git("rev-parse", "HEAD")
}

// squash merges topic into main as one commit.
func (f mergeForest) squash() string {
	f.t.Helper()
	f.Git("checkout", "--quiet", "main")
	f.Git("merge", "--quiet", "--squash", "topic")
	return f.commitAll("squash")
}

func kindOf(isSquash bool) attestation.MergeKind {
	if isSquash {
		return attestation.Squashed
	}
	return attestation.Merged
}

// wantClean checks that HEAD is a clean merge of main^ and topic.
func (f mergeForest) wantClean(isSquash bool) Merge {
	f.t.Helper()
	m, err := f.CheckMerge(f.t.Context(), Merge{Kind: kindOf(isSquash), Commit: "HEAD", Source: "topic"})
	if err != nil {
		f.t.Error(err)
		return m
	}
	want := Merge{Kind: kindOf(isSquash), Commit: f.Git("rev-parse", "HEAD"), Source: f.Git("rev-parse", "topic"),
		Parent: f.Git("rev-parse", "HEAD^1"), Tree: f.Git("rev-parse", "HEAD^{tree}"), Git: m.Git}
	if m != want || !strings.HasPrefix(f.Git("version"), "git version "+m.Git) {
		f.t.Errorf("got %+v, want %+v", m, want)
	}
	return m
}

// wantRefused checks that rev is not accepted as a merge of source, with a part of the error.
func (f mergeForest) wantRefused(rev, source string, isSquash bool, want string) {
	f.t.Helper()
	m, err := f.CheckMerge(f.t.Context(), Merge{Kind: kindOf(isSquash), Commit: rev, Source: source})
	if err == nil || !strings.Contains(err.Error(), want) {
		f.t.Errorf("%s with %s: %+v, error %v, want one with %q", rev, source, m, err, want)
	}
}

// Changes of both sides that git can merge, with the work of git itself as the standard.
func TestCleanMerges(t *testing.T) {
	many := strings.Repeat("the same line in both\n", 20)
	for name, change := range map[string]func(f mergeForest){
		"different files": func(f mergeForest) {
			f.on("topic", func() { f.write("b", "b\n") })
			f.on("main", func() { f.write("c", "c\n") })
		},
		"different lines": func(f mergeForest) {
			f.on("topic", f.top)
			f.on("main", f.end)
		},
		"the same change": func(f mergeForest) {
			f.on("topic", func() { f.top(); f.write("b", "b\n") })
			f.on("main", f.top)
		},
		"main did not move": func(f mergeForest) { f.on("topic", f.top) },
		"renames on both sides": func(f mergeForest) {
			f.on("main", func() { f.write("x/b", many) })
			f.Git("branch", "--force", "topic", "main")
			f.on("topic", func() { f.Git("mv", "a", "renamed"); f.write("x/b", many+"more\n") })
			f.on("main", func() { f.end(); f.Git("mv", "x/b", "moved") })
		},
		"modes and links": func(f mergeForest) {
			f.on("topic", func() { f.Git("update-index", "--chmod=+x", "a"); f.Git("checkout-index", "--force", "a") })
			f.on("main", func() {
				f.end()
				must.OK(f.t, os.Symlink("a", filepath.Join(f.Dir(), "link")))
			})
		},
		"a deleted file": func(f mergeForest) {
			f.on("topic", func() { f.Git("rm", "--quiet", "a"); f.write("b", "b\n") })
			f.on("main", func() { f.write("c", "c\n") })
		},
		"line ends by attributes": func(f mergeForest) {
			f.on("main", func() { f.write(".gitattributes", "*.txt text eol=crlf\n"); f.write("b.txt", lines) })
			f.Git("branch", "--force", "topic", "main")
			f.on("topic", func() { f.write("b.txt", strings.Replace(lines, "1", "one", 1)) })
			f.on("main", func() { f.write("b.txt", strings.Replace(lines, "9", "nine", 1)) })
		},
		"a submodule moves on one side": func(f mergeForest) {
			module := func(digit string) func() {
				return func() {
					f.Git("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat(digit, 40)+",module")
					must.OK(f.t, os.MkdirAll(filepath.Join(f.Dir(), "module"), 0o755))
				}
			}
			f.Git("checkout", "--quiet", "main")
			module("1")()
			f.Git("commit", "--quiet", "--message", "module")
			f.Git("branch", "--force", "topic", "main")
			f.Git("checkout", "--quiet", "topic")
			module("2")()
			f.Git("commit", "--quiet", "--message", "module")
			f.Git("checkout", "--quiet", "main")
			f.end()
			f.Git("commit", "--quiet", "--message", "main", "a")
		},
		"histories that cross": func(f mergeForest) {
			f.on("topic", f.top)
			f.on("main", f.end)
			f.Git("branch", "old", "main")
			f.merge("topic")
			f.Git("checkout", "--quiet", "topic")
			f.Git("merge", "--quiet", "--no-edit", "old")
			f.on("topic", func() { f.write("b", "b\n") })
			f.on("main", func() { f.write("c", "c\n") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newMergeForest(t)
			change(f)
			main := f.Git("rev-parse", "main")
			f.squash()
			f.wantClean(true)

			f.Git("reset", "--quiet", "--hard", main)
			f.merge("--no-ff", "topic")
			f.wantClean(false)
		})
	}
}

// Submodules that move on both sides are a conflict: which commit is newer is in another
// repository.
func TestMergeOfSubmodulesConflicts(t *testing.T) {
	f := newMergeForest(t)
	move := func(branch, digit string) {
		f.Git("checkout", "--quiet", branch)
		f.Git("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat(digit, 40)+",module")
		f.Git("commit", "--quiet", "--message", "module")
	}
	move("main", "1")
	f.Git("branch", "--force", "topic", "main")
	move("topic", "2")
	move("main", "3")
	move("main", "2") // as resolved by hand
	f.wantRefused("HEAD", "topic", true, `they conflict in "module"`)
}

// In a SHA-256 repository, all works the same.
func TestCleanMergeSHA256(t *testing.T) {
	f := newMergeForest(t, "--object-format=sha256")
	f.on("topic", f.top)
	f.on("main", f.end)
	f.squash()
	if m := f.wantClean(true); len(m.Commit) != 64 || len(m.Tree) != 64 {
		t.Errorf("ids: %+v", m)
	}
}

// One line that is in neither side is refused, by its path.
func TestSmuggledLineIsRefused(t *testing.T) {
	f := newMergeForest(t)
	f.on("topic", f.top)
	f.on("main", f.end)
	f.squash()
	for name, smuggle := range map[string]func(){
		`"a"`:       func() { f.write("a", "one\n2\n3\n4\nevil\n6\n7\n8\nnine\n") },
		`"new\nb"`:  func() { f.write("new\nb", "x") },
		`"x", "y"`:  func() { f.write("x", "x"); f.write("y", "y") },
		`"a", "a2"`: func() { f.Git("mv", "a", "a2") },
	} {
		f.Git("reset", "--quiet", "--hard")
		smuggle()
		f.commitAll("squash", "--amend")
		f.wantRefused("HEAD", "topic", true, "differs from what git makes of them in "+name)
		f.Git("reset", "--quiet", "--hard", "HEAD@{1}")
	}

	f.Git("update-index", "--chmod=+x", "a")
	f.Git("commit", "--quiet", "--amend", "--no-edit")
	f.wantRefused("HEAD", "topic", true, `in "a"`)
	f.Git("reset", "--quiet", "--hard", "HEAD@{1}")
	for i := range 15 {
		f.write(string(rune('b'+i)), "x")
	}
	f.commitAll("squash", "--amend")
	f.wantRefused("HEAD", "topic", true, `"k" and 5 more`)
}

// The text of a signature is anybody's: lines in it that look like the tree and the parents of a commit are not read.
func TestTreeInASignatureIsNotRead(t *testing.T) {
	f := newMergeForest(t)
	f.on("topic", f.top)
	f.on("main", f.end)
	f.squash()
	clean := f.Git("rev-parse", "HEAD^{tree}")
	f.write("a", "evil\n")
	f.commitAll("squash", "--amend")

	head, message, _ := strings.Cut(f.Git("cat-file", "commit", "HEAD"), "\n\n")
	object := head + "\ngpgsig x\n tree " + clean + "\n parent " + strings.Repeat("a", 40) + "\n\n" + message
	file := filepath.Join(t.TempDir(), "object")
	must.OK(t, os.WriteFile(file, []byte(object), 0o600))
	forged := f.Git("hash-object", "-t", "commit", "-w", file)
	f.wantRefused(forged, "topic", true, `differs from what git makes of them in "a"`)
}

// What git cannot merge alone is not clean, whatever a person made of it. Attributes,
// configuration and drivers do not change that.
func TestConflictIsRefused(t *testing.T) {
	for name, prepare := range map[string]func(f mergeForest){
		"plain": func(mergeForest) {},
		"union": func(f mergeForest) { f.write(".gitattributes", "* merge=union\n") },
		"a driver": func(f mergeForest) {
			f.write(".gitattributes", "* merge=ours\n")
			f.Git("config", "merge.ours.driver", "touch "+filepath.Join(f.Dir(), "ran")+"; true")
		},
		"a driver of the clone": func(f mergeForest) {
			f.write(".git/info/attributes", "* merge=ours\n")
			f.Git("config", "merge.ours.driver", "touch "+filepath.Join(f.Dir(), "ran")+"; true")
			f.Git("config", "merge.default", "ours")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newMergeForest(t)
			prepare(f)
			f.commitAll("prepare")
			f.Git("branch", "--force", "topic", "main")
			f.on("topic", f.top)
			f.on("main", func() { f.write("a", strings.Replace(lines, "1", "eins", 1)) })
			f.Git("checkout", "--quiet", "main")
			f.top()
			f.commitAll("resolved")
			f.wantRefused("HEAD", "topic", true, `they conflict in "a"`)
			if _, err := os.Stat(filepath.Join(f.Dir(), "ran")); err == nil {
				t.Error("the merge driver ran")
			}
		})
	}
}

// The configuration, filters and hooks of a clone do not change the verdict, nor do
// replacements of objects and false commit graphs, and none of its programs runs.
func TestCloneDoesNotChangeVerdict(t *testing.T) {
	f := newMergeForest(t)
	f.on("topic", func() { f.Git("mv", "a", "renamed") })
	f.on("main", f.end)
	f.squash()

	ran := filepath.Join(f.Dir(), "ran")
	for _, option := range []string{"merge.renames false", "diff.renames false", "merge.renameLimit 1",
		"merge.directoryRenames true", "merge.renormalize true", "core.autocrlf true", "merge.conflictStyle diff3",
		"filter.x.clean touch " + ran, "filter.x.smudge touch " + ran, "diff.x.textconv touch " + ran,
		"core.fsmonitor touch " + ran, "merge.x.driver touch " + ran} {
		name, value, _ := strings.Cut(option, " ")
		f.Git("config", name, value)
	}

	f.write(".git/info/attributes", "* filter=x diff=x merge=x\n")
	for _, hook := range []string{"reference-transaction", "post-index-change", "pre-merge-commit"} {
		path := filepath.Join(f.Dir(), ".git/hooks", hook)
		gitrepotest.WriteFile(t, path, "#!/bin/sh\ntouch "+ran+"\n")
		must.OK(t, os.Chmod(path, 0o755))
	}

	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "merge.renames")
	t.Setenv("GIT_CONFIG_VALUE_0", "false")
	m, err := f.CheckMerge(t.Context(), Merge{Kind: attestation.Squashed, Commit: "HEAD", Source: "topic"})
	if err != nil || m.Tree == "" {
		t.Error(err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program of the clone ran")
	}
}

// A replacement of the source makes git show another one; the verdict is about the objects.
func TestReplacedObjectsDoNotCount(t *testing.T) {
	f := newMergeForest(t)
	topic := f.on("topic", f.top)
	f.write("evil", "x")
	evil := f.commitAll("topic", "--amend")
	f.Git("reset", "--quiet", "--hard", topic)
	f.on("main", f.end)
	f.Git("replace", topic, evil)
	f.squash()
	f.wantRefused("HEAD", "topic", true, `in "evil"`)
}

// Commits that do not have the shape of the claim are refused, with what to do.
func TestMergeOfAnotherShape(t *testing.T) {
	f := newMergeForest(t)
	first := f.Git("rev-parse", "main")
	topic := f.on("topic", f.top)
	second := f.on("main", f.end)
	other := f.Branch("other", first, "o", "o")
	squash := f.squash()
	f.Git("reset", "--quiet", "--hard", second)
	merge := f.merge("--no-ff", "topic")
	f.Git("reset", "--quiet", "--hard", second)
	octopus := f.merge("topic", "other")
	f.Git("checkout", "--quiet", "--orphan", "alone")
	alone := f.commitAll("alone")
	f.Git("reset", "--quiet", "--hard", squash)

	for _, test := range []struct {
		rev, source string
		isSquash    bool
		want        string
	}{
		{squash, squash, true, "is the commit itself"},
		{merge, merge, false, "is the commit itself"},
		{first, topic, true, "has no parent"},
		{octopus, topic, false, "merges 2 commits at once"},
		{octopus, topic, true, "merges 2 commits at once"},
		{merge, topic, true, "use --merge-of"},
		{squash, topic, false, "use --squash-of"},
		{merge, other, false, "merges " + topic[:12] + ", not " + other[:12]},
		{merge, second, false, "merges " + topic[:12] + ", not"},
		{squash, first, true, "there is nothing to merge"},
		{squash, second, true, "there is nothing to merge"},
		{squash, alone, true, "have no common ancestor"},
		{squash, "nosuch", true, `commit "nosuch" not found`},
		{"nosuch", topic, true, `commit "nosuch" not found`},
		{squash, "-x", true, "is not a git revision"},
		{squash, "main^{tree}", true, "is a tree, not a commit"},
	} {
		f.wantRefused(test.rev, test.source, test.isSquash, test.want)
	}
	nowhere := mergeForest{forest{f.Forest, Repo{Dir: t.TempDir()}, t}}
	nowhere.wantRefused("HEAD", "topic", true, "not a git repository")
}

// An update has the commit of the mainline as one parent, and the other one is the source or comes after it. A
// rebase has the commit of the mainline among its first parents.
func TestUpdatesAndRebases(t *testing.T) {
	f := newMergeForest(t)
	first := f.Git("rev-parse", "main")
	topic := f.on("topic", f.top)
	main := f.on("main", f.end)
	f.Git("checkout", "--quiet", "-b", "updated", topic)
	f.Git("merge", "--quiet", "--no-edit", main)
	updated := f.Git("rev-parse", "HEAD")
	next := f.on("main", func() { f.write("next", "next\n") })
	f.Git("checkout", "--quiet", "updated")
	f.Git("merge", "--quiet", "--no-edit", "main")
	again := f.Git("rev-parse", "HEAD")
	f.Git("branch", "--quiet", "--force", "main", main)
	f.Git("checkout", "--quiet", "topic")
	second := f.on("topic", func() { f.write("b", "b\n") })
	f.Git("rebase", "--quiet", "main")
	rebased := f.Git("rev-parse", "HEAD")
	f.write("evil", "evil\n")
	evil := f.commitAll("evil", "--amend")

	for _, test := range []struct {
		kind                   attestation.MergeKind
		commit, source, parent string
		want                   string // in the error
	}{
		{attestation.Updated, updated, topic, main, ""},
		{attestation.Updated, updated, main, topic, ""},
		{attestation.Updated, updated, second, main, "does not contain"},
		{attestation.Updated, updated, first, main, "already contains"},
		{attestation.Updated, again, updated, next, ""},
		{attestation.Updated, again, topic, next, ""},
		{attestation.Updated, again, topic, main, "has the parent"},
		{attestation.Updated, updated, topic, first, "has the parent"},
		{attestation.Updated, rebased, second, main, "has one parent"},
		{attestation.Squashed, updated, topic, main, "has two parents"},
		{attestation.Rebased, rebased, second, main, ""},
		{attestation.Rebased, rebased, second, first, "differs"},
		{attestation.Rebased, rebased, second, topic, "is not among the 200 first parents"},
		{attestation.Rebased, rebased, second, rebased, "is not among the 200 first parents"},
		{attestation.Rebased, rebased, topic, main, "differs"},
		{attestation.Rebased, evil, second, main, "differs"},
		{attestation.Squashed, rebased, second, first, "has the parent"},
	} {
		m, err := f.CheckMerge(t.Context(), Merge{
			Kind: test.kind, Commit: test.commit, Source: test.source, Parent: test.parent,
		})
		if test.want == "" {
			if err != nil || m.Parent != test.parent || m.Tree == "" {
				t.Errorf("%s: %+v, %v", test.kind, m, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), test.want) || !IsNoMerge(err) {
			t.Errorf("%s of %.12s: %v, want %q", test.kind, test.source, err, test.want)
		}
	}
}
