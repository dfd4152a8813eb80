package gitrepo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Synthetic is a generated git repository for benchmarks. It has a commit on main,
// and one on the branch busy that changes three lines of every file.
type Synthetic struct {
	Repo
	base, sha string
}

// NewSynthetic creates a repository in a new folder of dir, with the given number of
// files of about 300 lines.
func NewSynthetic(ctx context.Context, dir string, files int) (Synthetic, error) {
	h := Synthetic{Repo: Repo{Dir: filepath.Join(dir, "busy"), Isolated: true}}
	if err := h.Create(ctx, "busy"); err != nil {
		return h, err
	}
	if err := h.fill(ctx, files); err != nil {
		return h, err
	}
	if _, err := h.Read(ctx, "repack", "-adq"); err != nil {
		return h, err
	}

	out, err := h.Read(ctx, "rev-parse", "main", "busy")
	if shas := strings.Fields(out); len(shas) == 2 {
		h.base, h.sha = shas[0], shas[1]
	}
	return h, err
}

// fill creates the commits.
func (h Synthetic) fill(ctx context.Context, files int) error {
	return h.FastImport(ctx, func(w io.Writer) { writeBusyHistory(w, files) })
}

// Create creates the repository in a new folder, with the branch that HEAD names. It has no
// commits.
func (g Repo) Create(ctx context.Context, branch string) error {
	if err := os.Mkdir(g.Dir, 0o755); err != nil {
		return err
	}
	if _, err := g.Read(ctx, "init", "--quiet", "--template="); err != nil {
		return err
	}
	_, err := g.Read(ctx, "symbolic-ref", "HEAD", localBranch+branch)
	return err
}

// FastImport runs git fast-import on what write writes, with additional options.
func (g Repo) FastImport(ctx context.Context, write func(io.Writer), options ...string) error {
	command := g.command(ctx, append([]string{"fast-import", "--quiet"}, options...)...)
	in, err := command.StdinPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return failure(command, "fast-import", err)
	}
	w := bufio.NewWriter(in)
	write(w)
	_ = w.Flush() // if it fails, so does git
	in.Close()
	if err := command.Wait(); err != nil {
		return failure(command, "fast-import", err)
	}
	return nil
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

// DiffTree returns the git command whose output ReadCommit reads.
func (h Synthetic) DiffTree(ctx context.Context) *exec.Cmd {
	return h.command(ctx, patchDiff(exactAndSimilar, h.base, h.sha)...)
}
