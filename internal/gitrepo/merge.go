package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
)

// A Merge is a commit whose tree is exactly what git makes of its first parent and another
// commit, the source.
type Merge struct {
	Commit, Source, Parent, Tree string
	// Git is the version of git that checked it.
	Git string
}

// CheckMerge checks that a commit is a clean merge of its first parent with the source, a
// revision: that git merges the two without conflicts, into the tree of the commit. A squash
// must have one parent. A merge must have two, and the second one must be the source.
//
// The verdict depends on the commits and the version of git alone. Configuration, attributes
// and with them merge drivers are ignored; renames are detected as git does by default.
func (g Repo) CheckMerge(ctx context.Context, rev, source string, isSquash bool) (m Merge, err error) {
	if m.Git, err = g.mergingVersion(ctx); err != nil {
		return m, err
	}
	if m.Commit, err = g.existingCommit(ctx, rev); err != nil {
		return m, err
	}
	if m.Source, err = g.existingCommit(ctx, source); err != nil {
		return m, err
	}
	objects, err := g.objects(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, objects.close()) }()

	c := mergeCheck{objects, &m}
	if err := c.readCommit(ctx, isSquash); err != nil {
		return m, err
	}
	if err := c.checkBases(ctx); err != nil {
		return m, err
	}
	return m, c.checkTree(ctx)
}

// The oldest version of git that has merge-tree --write-tree.
const (
	mergingMajor = 2
	mergingMinor = 38
)

// mergingVersion returns the version of git, or an error if it is too old to merge.
func (g Repo) mergingVersion(ctx context.Context) (string, error) {
	line, err := g.line(ctx, "version")
	if err != nil {
		return "", err
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(line, "git version "), " ")
	if !canMerge(version) {
		return "", fmt.Errorf("git %s is too old to check a merge: install git %d.%d or later", version, mergingMajor,
			mergingMinor)
	}
	return version, nil
}

func canMerge(version string) bool {
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, _ := strconv.Atoi(first)
	minor, _ := strconv.Atoi(second)
	return major > mergingMajor || major == mergingMajor && minor >= mergingMinor
}

// A mergeCheck checks one merge.
type mergeCheck struct {
	*objectStore
	*Merge
}

// readCommit reads the commit's tree and first parent. It refuses a commit that does not have
// the parents of a squash or a merge.
func (c mergeCheck) readCommit(ctx context.Context, isSquash bool) error {
	// The object itself also has the parents that a shallow clone hides.
	object, err := c.Read(ctx, "cat-file", "commit", c.Commit)
	if err != nil {
		return err
	}
	parsed, err := gitobject.Parse(c.Commit, []byte(object))
	if err != nil {
		return fmt.Errorf("read the object of commit %s: %w", ledger.Short(c.Commit), err)
	}
	parents := parsed.Parents
	c.Tree = parsed.Tree

	short := ledger.Short(c.Commit)
	switch {
	case c.Source == c.Commit:
		return fmt.Errorf("%s is the commit itself: name the commit that was merged into it", short)
	case len(parents) == 0:
		return fmt.Errorf("commit %s has no parent, so it merges nothing", short)
	case len(parents) > 2:
		return fmt.Errorf("commit %s merges %d commits at once: only merges of two can be checked", short, len(parents)-1)
	case isSquash && len(parents) == 2:
		return fmt.Errorf("commit %s has two parents: it is not a squash (use --merge-of)", short)
	case !isSquash && len(parents) == 1:
		return fmt.Errorf("commit %s has one parent: it is not a merge (use --squash-of)", short)
	case !isSquash && parents[1] != c.Source:
		return fmt.Errorf("commit %s merges %s, not %s", short, ledger.Short(parents[1]), ledger.Short(c.Source))
	}
	c.Parent = parents[0]
	return nil
}

// checkBases refuses commits without a merge base, and a source that the parent contains. In
// a shallow clone, the missing history must not matter.
func (c mergeCheck) checkBases(ctx context.Context) error {
	present, err := c.present(ctx, "commit", []string{c.Parent})
	if err != nil {
		return err
	}
	if !present[c.Parent] {
		return fmt.Errorf("the first parent, %s, is not in this clone: %s", ledger.Short(c.Parent), deepen)
	}
	out, err := c.line(ctx, noGraph, noGraphValue, "merge-base", "--all", c.Parent, c.Source)
	if err != nil {
		return err
	}

	bases := strings.Fields(out)
	switch {
	case slices.Contains(bases, c.Source):
		return fmt.Errorf("the first parent, %s, already contains %s: there is nothing to merge", ledger.Short(c.Parent),
			ledger.Short(c.Source))
	case len(bases) == 0 && c.shallow:
		return fmt.Errorf("this shallow clone has no common ancestor of %s and %s: %s", ledger.Short(c.Parent),
			ledger.Short(c.Source), deepen)
	case len(bases) == 0:
		return fmt.Errorf("%s and %s have no common ancestor", ledger.Short(c.Parent), ledger.Short(c.Source))
	case !c.shallow:
		return nil
	}
	return c.checkShallow(ctx, bases)
}

// deepen is what to do about missing history.
const deepen = "fetch the missing history, for example with 'git fetch --unshallow'"

// checkShallow refuses merge bases that may not be the best ones, because the clone lacks
// history above them.
func (c mergeCheck) checkShallow(ctx context.Context, bases []string) error {
	end, err := c.endAbove(ctx, bases, c.Parent, c.Source)
	if err != nil || end == "" {
		return err
	}
	return fmt.Errorf("this shallow clone ends at %s, so that the merge base is uncertain: %s", ledger.Short(end), deepen)
}

// checkTree merges the first parent and the source, and compares the result with the commit.
func (c mergeCheck) checkTree(ctx context.Context) error {
	tree, conflicts, err := c.mergeTree(ctx)
	switch {
	case err != nil:
		return err
	case conflicts != nil:
		return fmt.Errorf("commit %s is not a clean merge of %s and %s: they conflict in %s", ledger.Short(c.Commit),
			ledger.Short(c.Parent), ledger.Short(c.Source), namePaths(conflicts))
	case tree == c.Tree:
		return nil
	}

	// The objects of the merge are in the temporary folder.
	out, err := c.writable().Read(ctx, "diff-tree", "-r", "-z", "--name-only", "--no-renames", tree, c.Tree)
	if err != nil {
		return err
	}
	return fmt.Errorf("commit %s is not a clean merge of %s and %s: it differs from what git makes of them in %s",
		ledger.Short(c.Commit), ledger.Short(c.Parent), ledger.Short(c.Source), namePaths(splitNull(out)))
}

// mergeTree merges the first parent and the source. It returns the tree, or the paths in
// conflict.
func (c mergeCheck) mergeTree(ctx context.Context) (tree string, conflicts []string, err error) {
	command := c.writable().command(ctx, noGraph, noGraphValue, "-c", "merge.renames=true", "-c", "merge.renameLimit=7000",
		"-c", "merge.directoryRenames=conflict", "-c", "merge.renormalize=false",
		"merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", c.Parent, c.Source)
	var stdout strings.Builder
	command.Stdout = &stdout
	err = command.Run()
	exit, _ := errors.AsType[*exec.ExitError](err)
	if err != nil && (exit == nil || exit.ExitCode() != 1) {
		return "", nil, failure(command, "merge-tree", err)
	}

	fields := splitNull(stdout.String())
	switch {
	case len(fields) == 0:
		return "", nil, errors.New("git merge-tree printed no tree")
	case err != nil && len(fields) == 1:
		return "", nil, failure(command, "merge-tree", err)
	case err != nil:
		return "", fields[1:], nil
	}
	return fields[0], nil, nil
}

// maxNamedPaths is the number of paths that an error names.
const maxNamedPaths = 10

// namePaths names the first paths and counts the others.
func namePaths(paths []string) string {
	paths = slices.Compact(paths)
	names := make([]string, 0, maxNamedPaths)
	for _, path := range paths[:min(len(paths), maxNamedPaths)] {
		names = append(names, strconv.Quote(path))
	}
	text := strings.Join(names, ", ")
	if more := len(paths) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
