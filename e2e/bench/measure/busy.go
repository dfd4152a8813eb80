package measure

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
)

// newBusy creates a git repository in a new folder of dir, with the given number of files of about 300
// lines. It has a commit on main, and one on the branch busy that changes three lines of every file.
func newBusy(ctx context.Context, dir string, files int) (gitrepo.Repo, error) {
	g := gitrepo.Repo{Dir: filepath.Join(dir, "busy"), Isolated: true}
	if err := g.Create(ctx, "busy"); err != nil {
		return g, err
	}
	if err := g.FastImport(ctx, func(w io.Writer) { writeBusyHistory(w, files) }); err != nil {
		return g, err
	}
	_, err := g.Read(ctx, "repack", "-adq")
	return g, err
}

// diffTree runs the git diff-tree that commit register runs.
func diffTree(ctx context.Context, g gitrepo.Repo) error {
	_, err := g.Read(ctx, "--literal-pathspecs", "diff-tree", "-r", "-M50%", "--ignore-submodules=none", "--raw", "-z",
		"-p", "-U0", "--no-abbrev", "--full-index", "--diff-algorithm=histogram", "--no-indent-heuristic", "--no-color",
		"--no-ext-diff", "--no-textconv", "main", "busy", "--")
	return err
}

// writeBusyHistory writes the commits in the format of git fast-import.
func writeBusyHistory(w io.Writer, files int) {
	random := rand.New(rand.NewPCG(1, 1))
	texts := make([][]string, files)
	for i := range texts {
		texts[i] = make([]string, 200+random.IntN(200))
		for k := range texts[i] {
			texts[i][k] = busyLine(random)
		}
	}
	writeBusyCommit(w, "main", texts)
	for _, lines := range texts {
		for range 3 {
			lines[random.IntN(len(lines))] = fmt.Sprint("\tchanged ", random.Int())
		}
	}
	writeBusyCommit(w, "busy", texts)
}

// busyLine returns a line of a program. One in four is a common line that repeats.
func busyLine(random *rand.Rand) string {
	if random.IntN(4) == 0 {
		return []string{"", "}", "\t}", "func f() {"}[random.IntN(4)]
	}
	return fmt.Sprintf("\tvalue%d := compute(%d, %q)", random.IntN(1000), random.IntN(1000), "some text")
}

func writeBusyCommit(w io.Writer, branch string, texts [][]string) {
	fmt.Fprintf(w, "commit refs/heads/%s\ncommitter Ada Example <ada@example.org> 1700000000 +0000\ndata 5\nBusy\n\n",
		branch)
	if branch != "main" {
		fmt.Fprint(w, "from refs/heads/main\n")
	}
	for i, lines := range texts {
		text := strings.Join(lines, "\n") + "\n"
		fmt.Fprintf(w, "M 100644 inline dir%d/file%d.go\ndata %d\n%s\n", i%20, i, len(text), text)
	}
	fmt.Fprintln(w)
}
