package cmd

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
)

// A randomHistory is a small history derived from a seed: a mainline of a few commits,
// and three branches, each of which starts at one of them.
type randomHistory struct {
	*rand.Rand
	name     string
	branches []string
	done     []string // descriptions of the changes, for failure messages
}

func newRandomHistory(seed uint64) *randomHistory {
	return &randomHistory{Rand: rand.New(rand.NewPCG(seed, 5)), name: fmt.Sprintf("h%d", seed)}
}

// mainline returns the branch of the mainline.
func (h *randomHistory) mainline() string { return h.name + "/main" }

// write writes the history in the format of git fast-import.
func (h *randomHistory) write(in *bytes.Buffer) {
	tree := h.tree()
	h.commit(in, h.mainline(), "", tree)
	for i := range 3 {
		if i > 0 && h.IntN(4) == 0 {
			next := maps.Clone(tree)
			h.change(h.mainline(), next)
			h.commit(in, h.mainline(), h.mainline(), next)
			tree = next
		}
		branch := fmt.Sprintf("%s/b%d", h.name, i)
		h.branches = append(h.branches, branch)
		own, from := maps.Clone(tree), h.mainline()
		for range 1 + h.IntN(2) {
			h.change(branch, own)
			h.commit(in, branch, from, own)
			from = branch
		}
	}
}

func (h *randomHistory) commit(in *bytes.Buffer, branch, from string, tree gitrepotest.Tree) {
	fmt.Fprintf(in, "commit refs/heads/%s\ncommitter %s <%[1]s@example.org> 1700000000 +0000\ndata 2\nx\n\n", branch,
		branch)
	if from != "" && from != branch {
		fmt.Fprintf(in, "from refs/heads/%s\n", from)
	}
	in.WriteString("deleteall\n")
	for _, path := range slices.Sorted(maps.Keys(tree)) {
		f := tree[path]
		fmt.Fprintf(in, "M %s inline \"%s\"\ndata %d\n%s\n", f.Mode, path, len(f.Content), f.Content)
	}
	in.WriteString("\n")
}

// tree returns the initial files: text files with common lines in three folders, some of
// them executable, a binary file and a symlink.
func (h *randomHistory) tree() gitrepotest.Tree {
	tree := gitrepotest.Tree{"bin/logo.png": gitrepotest.TextFile("\x00logo" + h.line()),
		"src/link": gitrepotest.LinkFile("main.go")}
	for _, path := range []string{"src/main.go", "src/util.go", "docs/guide.md", "docs/faq.md", "bin/run.sh", "LICENSE",
		"with space é.txt"} {
		f := gitrepotest.TextFile(h.text(4 + h.IntN(40)))
		if h.IntN(4) == 0 {
			f.Mode = "100755"
		}
		tree[path] = f
	}
	return tree
}

// line returns a random line of text. Some lines are frequent.
func (h *randomHistory) line() string {
	switch h.IntN(8) {
	case 0:
		return "}"
	case 1:
		return ""
	case 2:
		return fmt.Sprintf("func f%d() {", h.IntN(1000))
	}
	return fmt.Sprintf("\tword%d word%d", h.IntN(1_000_000), h.IntN(1_000_000))
}

func (h *randomHistory) text(lines int) string {
	var b strings.Builder
	for range lines {
		b.WriteString(h.line() + "\n")
	}
	return b.String()
}

// change makes one to three random changes to the tree.
func (h *randomHistory) change(branch string, tree gitrepotest.Tree) {
	for range 1 + h.IntN(3) {
		path := h.pick(tree)
		steps := []struct {
			weight int
			do     func(gitrepotest.Tree, string) string
		}{
			{40, h.edit}, {6, h.remove}, {10, h.move}, {5, h.moveAndEdit}, {6, h.chmod}, {8, h.add}, {3, h.link},
			{2, h.makeFolder}, {5, h.binary},
		}
		n := h.IntN(85)
		for _, s := range steps {
			if n -= s.weight; n < 0 {
				h.done = append(h.done, branch+": "+s.do(tree, path))
				break
			}
		}
	}
}

func (h *randomHistory) pick(tree gitrepotest.Tree) string {
	paths := slices.Sorted(maps.Keys(tree))
	return paths[h.IntN(len(paths))]
}

// edit replaces a few lines of a file. The new lines are often the same in two branches.
func (h *randomHistory) edit(tree gitrepotest.Tree, path string) string {
	f := tree[path]
	if f.Mode == "120000" || strings.HasPrefix(f.Content, "\x00") {
		f.Content = f.Content[:1] + h.line()
		tree[path] = f
		return "sets " + path
	}
	lines := strings.SplitAfter(f.Content, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	at := h.IntN(len(lines) + 1)
	old := min(h.IntN(3), len(lines)-at)

	var added []string
	for i := range h.IntN(3) {
		line := h.line()
		if h.IntN(3) == 0 {
			line = fmt.Sprintf("edited %d", at+i)
		}
		added = append(added, line+"\n")
	}
	if h.IntN(12) == 0 && at+old == len(lines) && len(added) > 0 {
		added[len(added)-1] = strings.TrimSuffix(added[len(added)-1], "\n")
	}

	if at == len(lines) && at > 0 && !strings.HasSuffix(lines[at-1], "\n") {
		lines[at-1] += "\n"
	}
	f.Content = strings.Join(slices.Replace(lines, at, at+old, added...), "")
	tree[path] = f
	return fmt.Sprintf("edits %s, line %d, -%d +%d", path, at+1, old, len(added))
}

func (h *randomHistory) remove(tree gitrepotest.Tree, path string) string {
	delete(tree, path)
	return "removes " + path
}

// free returns one of a few paths at which a file can be created.
func (h *randomHistory) free(tree gitrepotest.Tree) string {
	for {
		path := []string{"src/", "docs/", "new/", ""}[h.IntN(4)] + fmt.Sprintf("n%d", h.IntN(4))
		taken := false
		for other := range tree {
			taken = taken || other == path || strings.HasPrefix(other, path+"/")
		}
		if _, ok := tree[strings.TrimSuffix(path[:strings.LastIndex(path, "/")+1], "/")]; !taken && !ok {
			return path
		}
	}
}

func (h *randomHistory) move(tree gitrepotest.Tree, path string) string {
	to := h.free(tree)
	tree[to] = tree[path]
	delete(tree, path)
	return "moves " + path + " to " + to
}

func (h *randomHistory) moveAndEdit(tree gitrepotest.Tree, path string) string {
	to := h.free(tree)
	tree[to] = tree[path]
	delete(tree, path)
	return "moves " + path + " to " + to + ", " + h.edit(tree, to)
}

func (h *randomHistory) chmod(tree gitrepotest.Tree, path string) string {
	f := tree[path]
	switch f.Mode {
	case "100644":
		f.Mode = "100755"
	case "100755":
		f.Mode = "100644"
	}
	tree[path] = f
	return "changes the mode of " + path
}

func (h *randomHistory) add(tree gitrepotest.Tree, _ string) string {
	path, text := h.free(tree), "the same\nin all\nbranches\n"
	switch h.IntN(4) {
	case 0:
		text = ""
	case 1, 2:
		text = h.text(1 + h.IntN(10))
	}
	tree[path] = gitrepotest.TextFile(text)
	return "adds " + path
}

// link replaces a file by a symlink, or a symlink by a file.
func (h *randomHistory) link(tree gitrepotest.Tree, path string) string {
	if tree[path].Mode == "120000" {
		tree[path] = gitrepotest.TextFile(h.text(3))
		return "replaces the link " + path + " by a file"
	}
	tree[path] = gitrepotest.LinkFile("to" + h.line())
	return "replaces " + path + " by a link"
}

// makeFolder replaces a file by a folder that contains it.
func (h *randomHistory) makeFolder(tree gitrepotest.Tree, path string) string {
	tree[path+"/in"] = tree[path]
	delete(tree, path)
	return "replaces " + path + " by a folder"
}

func (h *randomHistory) binary(tree gitrepotest.Tree, _ string) string {
	tree["bin/logo.png"] = gitrepotest.TextFile(fmt.Sprintf("\x00logo%d", h.IntN(3)))
	return "sets bin/logo.png"
}
