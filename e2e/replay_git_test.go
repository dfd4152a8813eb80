package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
)

// A gitHistory is a clone of a repository with merge commits, in which a replay makes more
// of them.
type gitHistory struct {
	t    *testing.T
	name string
	dir  string
}

// newGitHistory clones a repository, without its branches. The clone ignores the attributes of
// the repository, so that its files are what git stores.
func newGitHistory(t *testing.T, name, path string) *gitHistory {
	h := &gitHistory{t: t, name: name, dir: t.TempDir()}
	h.git("clone", "--quiet", "--shared", "--no-checkout", path, ".")
	h.git("config", "core.hooksPath", os.DevNull)
	h.git("config", "gc.auto", "0")
	gitrepotest.WriteFile(t, filepath.Join(h.dir, ".git", "info", "attributes"), "* -text -filter !merge\n")
	h.git("checkout", "--quiet", "--force", "--detach", "HEAD")
	for ref := range strings.FieldsSeq(h.git("for-each-ref", "--format=%(refname)", "refs/remotes", "refs/heads")) {
		h.git("update-ref", "-d", ref)
	}
	return h
}

// git runs git and returns its output.
func (h *gitHistory) git(args ...string) string {
	h.t.Helper()
	return gitrepotest.Git(h.t, h.dir, "", args...)
}

// try runs git, and reports whether it succeeded.
func (h *gitHistory) try(environ []string, args ...string) (out string, ok bool) {
	command := exec.Command("git", append([]string{"-C", h.dir}, args...)...)
	command.Env = append(os.Environ(), environ...)
	text, err := command.Output()
	return strings.TrimSpace(string(text)), err == nil
}

// A pull is a branch that came to the mainline of a history.
type pull struct {
	// merged is the commit on the mainline: its files are those after the merge.
	merged string
	// tip is the branch, if it was merged.
	tip string
	// run has commits of the mainline, oldest first, if none was merged. They become a branch.
	run []string
}

// pulls returns how the mainline of a history has come about, oldest first, and the commit before that. Commits that
// merge nothing become branches of one or several commits, of these lengths by turns.
func (h *gitHistory) pulls(most int, lengths ...int) (list []pull, start string) {
	line := h.parents("--first-parent", "HEAD")
	forks := h.forks(line)
	start = line[0].id
	var run []string
	for i, c := range line[1:] {
		if len(c.parents) > 1 {
			list = append(list, pull{merged: c.id, tip: c.parents[1]})
			continue
		}
		run = append(run, c.id)
		isLast := i+2 == len(line) || len(line[i+2].parents) > 1
		if isLast || forks[c.id] || len(run) == lengths[len(list)%len(lengths)] {
			list, run = append(list, pull{merged: c.id, run: run}), nil
		}
	}
	if excess := len(list) - most; excess > 0 {
		start, list = list[excess-1].merged, list[excess:]
	}
	return list, start
}

// A gitCommit is a commit with its parents.
type gitCommit struct {
	id      string
	parents []string
}

// parents lists commits, parents first.
func (h *gitHistory) parents(args ...string) (list []gitCommit) {
	out := h.git(append([]string{"rev-list", "--topo-order", "--reverse", "--parents"}, args...)...)
	for line := range strings.Lines(out) {
		ids := strings.Fields(line)
		list = append(list, gitCommit{id: ids[0], parents: ids[1:]})
	}
	return list
}

// forks returns the commits of the mainline on which branches are built.
func (h *gitHistory) forks(mainline []gitCommit) map[string]bool {
	isMain, forks := make(map[string]bool), make(map[string]bool)
	for _, c := range mainline {
		isMain[c.id] = true
	}
	for _, c := range h.parents("HEAD") {
		for _, parent := range c.parents {
			if !isMain[c.id] {
				forks[parent] = true
			}
		}
	}
	return forks
}

// tree returns the tree of a commit.
func (h *gitHistory) tree(commit string) string { return h.git("rev-parse", commit+"^{tree}") }

// cleanTree returns what git makes of two commits, or "" if they conflict.
func (h *gitHistory) cleanTree(mainline, branch string) string {
	out, ok := h.try(nil, "merge-tree", "--write-tree", "--no-messages", mainline, branch)
	if !ok {
		return ""
	}
	return out
}

// copy makes a commit again, with other files and parents.
func (h *gitHistory) copy(commit, tree string, parents ...string) string {
	h.t.Helper()
	head, message, _ := strings.Cut(h.git("cat-file", "commit", commit), "\n\n")
	object := "tree " + tree + "\n"
	for _, parent := range parents {
		object += "parent " + parent + "\n"
	}
	for line := range strings.Lines(head) {
		if name, _, _ := strings.Cut(line, " "); name == "author" || name == "committer" || name == "encoding" {
			object += strings.TrimSuffix(line, "\n") + "\n"
		}
	}
	return gitrepotest.Git(h.t, h.dir, object+"\n"+message+"\n", "hash-object", "-t", "commit", "-w", "--stdin")
}

// pick puts the change of a commit with one parent on another one. It returns "" if they conflict.
func (h *gitHistory) pick(commit, onto string) string {
	twin := h.git("commit-tree", onto+"^{tree}", "-p", commit+"^", "-m", "Twin") // so that the merge base is the parent
	if tree := h.cleanTree(twin, commit); tree != "" {
		return h.copy(commit, tree, onto)
	}
	return ""
}

// commit makes a commit.
func (h *gitHistory) commit(tree, message string, parents ...string) string {
	h.t.Helper()
	args := []string{"commit-tree", tree, "-m", message}
	for _, parent := range parents {
		args = append(args, "-p", parent)
	}
	return h.git(args...)
}

// maxRebased limits the commits that a replay rebases for one merge.
const maxRebased = 50

// rebase makes the commits of a branch again on another commit, and returns the last one. It
// returns "" if they conflict, if none is left, or if there are too many.
func (h *gitHistory) rebase(branch, onto string) string {
	count := must.Get(strconv.Atoi(h.git("rev-list", "--count", "--no-merges", onto+".."+branch)))(h.t)
	if count == 0 || count > maxRebased {
		return ""
	}

	if _, ok := h.try(nil, "rebase", "--quiet", "--force-rebase", onto, branch); !ok {
		h.try(nil, "rebase", "--abort")
		h.git("reset", "--quiet", "--hard")
		h.git("clean", "-qffdx")
		return ""
	}
	if commit := h.git("rev-parse", "HEAD"); commit != onto {
		return commit
	}
	return ""
}

// smuggle returns a commit with the parents of another one, and its tree with one more line
// in its first file. It returns "" if the tree has no regular file.
func (h *gitHistory) smuggle(commit string) string {
	mode, object, path := h.firstFile(commit)
	if path == "" {
		return ""
	}
	content, err := exec.Command("git", "-C", h.dir, "cat-file", "blob", object).Output()
	must.OK(h.t, err)
	changed := gitrepotest.Git(h.t, h.dir, string(content)+"\nsmuggled\n", "hash-object", "-w", "--stdin")

	index := []string{"GIT_INDEX_FILE=" + filepath.Join(h.t.TempDir(), "index")}
	h.try(index, "read-tree", commit)
	h.try(index, "update-index", "--cacheinfo", fmt.Sprintf("%s,%s,%s", mode, changed, path))
	tree, ok := h.try(index, "write-tree")
	if !ok || tree == h.tree(commit) {
		h.t.Fatalf("%s: no tree of %s with one more line", h.name, commit)
	}

	return h.commit(tree, "Smuggled", strings.Fields(h.git("log", "-1", "--format=%P", commit))...)
}

// firstFile returns the first regular file of a commit.
func (h *gitHistory) firstFile(commit string) (mode, object, path string) {
	for entry := range strings.SplitSeq(h.git("ls-tree", "-r", "-z", commit), "\x00") {
		about, name, _ := strings.Cut(entry, "\t")
		if fields := strings.Fields(about); len(fields) == 3 && fields[0] == "100644" {
			return fields[0], fields[2], name
		}
	}
	return "", "", ""
}

// writeMerges writes a history with merges, and returns its folder. Of ten branches, four are
// up to date when they are merged, four are not, one conflicts, and one is edited in the
// merge.
func writeMerges(t *testing.T, merges int) string {
	f := gitrepotest.NewForest(t)
	const files, lines = 7, 30
	texts := make([][]string, files)
	for i := range texts {
		texts[i] = slices.Repeat([]string{"line"}, lines)
	}
	write := func(file, line int, text string) {
		texts[file%files][line%lines] = text
		f.Commit(fmt.Sprintf("file%d", file%files), numberedLines(texts[file%files]))
	}
	for i := range texts {
		write(i, 0, "start")
	}

	for n := range merges {
		f.Git("checkout", "--quiet", "-b", "topic")
		before := slices.Clone(texts[(n+1)%files])
		for i := range 1 + n%5/2 {
			write(n, 3*n+i, fmt.Sprintf("branch %d.%d", n, i))
		}
		branched := slices.Clone(texts[n%files])

		f.Git("checkout", "--quiet", "main")
		texts[(n+1)%files] = before
		switch n % 10 {
		case 1, 3, 6, 8: // the mainline moves
			write(n+1, 5, fmt.Sprint("mainline ", n))
		case 4: // and conflicts
			texts[n%files] = slices.Clone(branched)
			write(n, 3*n, fmt.Sprint("mainline ", n))
			f.Git("merge", "--quiet", "--no-ff", "--strategy=ours", "-m", "Merge by hand", "topic")
		}

		if n%10 != 4 {
			f.Git("merge", "--quiet", "--no-ff", "--no-commit", "topic")
			if n%10 == 9 {
				gitrepotest.WriteFile(t, filepath.Join(f.Dir, "edited"), fmt.Sprint(n))
			}
			f.Git("add", "--all")
			f.Git("commit", "--quiet", "-m", "Merge")
		}
		f.Git("branch", "--quiet", "-D", "topic")
	}
	return f.Dir
}

// numberedLines returns lines of a file, each with its number.
func numberedLines(list []string) string {
	var text bytes.Buffer
	for i, line := range list {
		fmt.Fprintln(&text, i, line)
	}
	return text.String()
}
