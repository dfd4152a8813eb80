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
	// queued has the commits that a merge queue made instead of those of the mainline.
	queued map[string]string
}

// newGitHistory clones a repository. The clone ignores the attributes of the repository, so
// that its files are what git stores.
func newGitHistory(t *testing.T, name, path string) *gitHistory {
	h := &gitHistory{t: t, name: name, dir: t.TempDir(), queued: make(map[string]string)}
	h.git("clone", "--quiet", "--shared", "--no-checkout", path, ".")
	h.git("config", "core.hooksPath", os.DevNull)
	h.git("config", "gc.auto", "0")
	gitrepotest.WriteFile(t, filepath.Join(h.dir, ".git", "info", "attributes"), "* -text -filter !merge\n")
	h.git("checkout", "--quiet", "--force", "--detach", "HEAD")
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

// A gitMerge is a commit of two parents: the mainline, and the branch that it merges.
type gitMerge struct{ commit, mainline, branch string }

// merges returns the merges of a history, parents first.
func (h *gitHistory) merges() (list []gitMerge) {
	out := h.git("rev-list", "--min-parents=2", "--max-parents=2", "--parents", "--topo-order", "--reverse", "HEAD")
	for line := range strings.Lines(out) {
		ids := strings.Fields(line)
		list = append(list, gitMerge{ids[0], ids[1], ids[2]})
	}
	return list
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

// squash makes one commit of a branch, or "" if it conflicts with the mainline.
func (h *gitHistory) squash(m gitMerge) string {
	tree := h.cleanTree(m.mainline, m.branch)
	if tree == "" {
		return ""
	}
	return h.git("commit-tree", tree, "-p", m.mainline, "-m", "Squash of "+m.branch)
}

// maxRebased limits the commits that a replay rebases for one merge.
const maxRebased = 50

// rebase makes the commits of a branch again on the mainline, and returns the last one. It
// returns "" if they conflict, if none is left, or if there are too many.
func (h *gitHistory) rebase(m gitMerge, committer string) string {
	count := must.Get(strconv.Atoi(h.git("rev-list", "--count", "--no-merges", m.mainline+".."+m.branch)))(h.t)
	if count == 0 || count > maxRebased {
		return ""
	}

	environ := []string{"GIT_COMMITTER_NAME=" + committer}
	if _, ok := h.try(environ, "rebase", "--quiet", "--force-rebase", m.mainline, m.branch); !ok {
		h.try(nil, "rebase", "--abort")
		h.git("reset", "--quiet", "--hard")
		h.git("clean", "-qffdx")
		return ""
	}
	if commit := h.git("rev-parse", "HEAD"); commit != m.mainline {
		return commit
	}
	return ""
}

// queue returns the commit of a merge queue: the branch, rebased on what the queue has made
// of the mainline.
func (h *gitHistory) queue(m gitMerge) string {
	commit := h.rebase(gitMerge{mainline: h.queueParent(m), branch: m.branch}, "Queue")
	if commit != "" {
		h.queued[m.commit] = commit
	}
	return commit
}

// queueParent returns the commit on which the queue puts a branch.
func (h *gitHistory) queueParent(m gitMerge) string {
	if commit := h.queued[m.mainline]; commit != "" {
		return commit
	}
	return m.mainline
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

	args := []string{"commit-tree", tree, "-m", "Smuggled"}
	for parent := range strings.FieldsSeq(h.git("log", "-1", "--format=%P", commit)) {
		args = append(args, "-p", parent)
	}
	return h.git(args...)
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
