package demo

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/ledger"
)

// A repository is a git repository of the story: first a plan of its commits, which then
// become objects of git.
type repository struct {
	gitrepo.Repo
	name    string
	commits []*commit // parents come before their children
	main    *commit   // the latest commit of the mainline
}

// A commit is a commit of a repository.
type commit struct {
	in        *repository
	branch    string
	parent    *commit // nil for the first one
	files     files
	author    ledger.Author
	committer ledger.Author
	subject   string
	ago       time.Duration // when it was written
	topic     *commit       // the commit of a branch that this one is the squash of; nil if none

	sha  string
	read gitrepo.Commit
}

// mainBranch is the mainline of each repository.
const mainBranch = "main"

// add adds a commit to the plan.
func (r *repository) add(c *commit) *commit {
	c.in = r
	r.commits = append(r.commits, c)
	if c.branch == mainBranch {
		r.main = c
	}
	return c
}

// landed returns the commits of branches that the base of a commit contains.
func (c *commit) landed() []string {
	base := c.parent
	for base != nil && base.branch != mainBranch {
		base = base.parent
	}
	var list []string
	for ; base != nil; base = base.parent {
		if base.topic != nil {
			list = append(list, base.topic.sha)
		}
	}
	return list
}

// create creates the repository with all commits, as of end, and reads them as 'ledgerd
// commit register' does.
func (r *repository) create(ctx context.Context, end time.Time) error {
	if err := r.Create(ctx, mainBranch); err != nil {
		return err
	}
	marks := filepath.Join(r.Dir, ".git", "demo-marks")
	write := func(w io.Writer) { r.write(w, end) }
	if err := r.FastImport(ctx, write, "--export-marks="+marks); err != nil {
		return err
	}
	if err := r.readMarks(marks); err != nil {
		return err
	}

	for _, c := range r.commits {
		var err error
		if c.read, err = r.ReadCommit(ctx, gitrepo.Query{Rev: c.sha, Branch: c.branch, Target: mainBranch}); err != nil {
			return err
		}
		if c.read.ChangesErr != nil {
			return fmt.Errorf("read the changes of %s: %w", c.subject, c.read.ChangesErr)
		}
		c.read.Contained = c.landed()
	}
	return nil
}

// write writes the commits in the format of git fast-import. The commits of branches get
// refs that cannot be in each other's way.
func (r *repository) write(w io.Writer, end time.Time) {
	mark := make(map[*commit]int)
	for i, c := range r.commits {
		mark[c] = i + 1
		ref := "refs/heads/" + mainBranch
		if c.branch != mainBranch {
			ref = fmt.Sprintf("refs/demo/%d", i)
		}
		at := end.Add(-c.ago).Unix()
		fmt.Fprintf(w, "commit %s\nmark :%d\nauthor %s <%s> %d +0000\ncommitter %s <%s> %d +0000\n", ref, mark[c],
			c.author.Name, c.author.Email, at, c.committer.Name, c.committer.Email, at)
		fmt.Fprintf(w, "data %d\n%s\n", len(c.subject), c.subject)

		var before files
		if c.parent != nil {
			fmt.Fprintf(w, "from :%d\n", mark[c.parent])
			before = c.parent.files
		}
		writeChanges(w, before, c.files)
	}
}

// writeChanges writes the difference of two trees in the format of git fast-import.
func writeChanges(w io.Writer, before, after files) {
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[path]; !ok {
			fmt.Fprintf(w, "D %s\n", path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if text, ok := before[path]; !ok || text != after[path] {
			fmt.Fprintf(w, "M 100644 inline %s\ndata %d\n%s\n", path, len(after[path]), after[path])
		}
	}
	fmt.Fprintln(w)
}

// readMarks reads the ids of the commits, which git fast-import has written to a file.
func (r *repository) readMarks(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		var mark int
		var sha string
		if _, err := fmt.Sscanf(line, ":%d %s", &mark, &sha); err != nil || mark < 1 || mark > len(r.commits) {
			return fmt.Errorf("unknown mark of git fast-import: %q", line)
		}
		r.commits[mark-1].sha = sha
	}
	return nil
}
