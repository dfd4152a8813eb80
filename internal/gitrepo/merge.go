package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
)

// A Merge is a commit whose tree is exactly what git makes of a commit of the mainline, the parent, and another commit,
// the source.
type Merge struct {
	Kind                         attestation.MergeKind
	Commit, Source, Parent, Tree string
	// Git is the version of git that checked it.
	Git string
}

// CheckMerge checks that git merges the parent and the source of a claim without conflicts, into the tree of the
// commit, and that the commit has the parents of the kind. Commit and source are revisions, and the parent a commit; an
// empty one is the first parent, and the source of a merge is then the second one. The tree need not be set.
//
// The verdict depends on the commits and the version of git alone. Configuration, attributes
// and with them merge drivers are ignored; renames are detected as git does by default.
func (g Repo) CheckMerge(ctx context.Context, claim Merge) (m Merge, err error) {
	m = claim
	if m.Commit, err = g.existingCommit(ctx, claim.Commit); err != nil {
		return m, err
	}
	if m.Source, err = g.existingCommit(ctx, claim.Source); err != nil {
		return m, err
	}
	checker, err := g.MergeChecker(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, checker.Close()) }()
	return checker.Check(ctx, m)
}

// A MergeChecker checks claims about the commits of a repository. Its Read sees the commits as they are, without
// refs, configuration and replacements.
type MergeChecker struct {
	*objectStore
	// Timeout limits the time of one check.
	Timeout time.Duration
	clone   Repo
	version string
}

// The limits of a MergeChecker.
const (
	maxCheckTime   = time.Minute
	maxMergeOutput = 64 << 20 // bytes of one git command
)

// MergeChecker returns a checker. The caller must close it. Git older than 2.38 is an error.
func (g Repo) MergeChecker(ctx context.Context) (*MergeChecker, error) {
	version, err := g.mergingVersion(ctx)
	if err != nil {
		return nil, err
	}
	objects, err := g.objects(ctx)
	if err != nil {
		return nil, err
	}
	objects.maxOutput = maxMergeOutput
	return &MergeChecker{objects, maxCheckTime, g, version}, nil
}

// Close removes the temporary files of the checker.
func (c *MergeChecker) Close() error { return c.close() }

// Check is like Repo.CheckMerge, but takes only full IDs. IsIncomplete reports that an error is due to history that
// the clone lacks, and IsNoMerge that the commit is no such merge.
func (c *MergeChecker) Check(ctx context.Context, claim Merge) (Merge, error) {
	claim.Git = c.version
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	err := mergeCheck{c.objectStore, &claim}.check(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("git took longer than %v to merge %s and %s", c.Timeout, ledger.Short(claim.Parent),
			ledger.Short(claim.Source))
	}
	return claim, c.Explain(ctx, err)
}

// Explain returns the error of a git command with what to do if the cause is that the clone is partial. IsIncomplete
// then reports true.
func (c *MergeChecker) Explain(ctx context.Context, err error) error {
	if _, failed := errors.AsType[*commandError](err); failed && c.clone.isPartial(ctx) {
		return fmt.Errorf("%w: %w", errPartialMerge, err)
	}
	return err
}

// Present reports which of the commits the repository has.
func (c *MergeChecker) Present(ctx context.Context, commits []string) (map[string]bool, error) {
	return c.present(ctx, "commit", commits)
}

// IsShallow reports whether the clone lacks parents of commits.
func (c *MergeChecker) IsShallow() bool { return c.shallow }

// MergeBase returns a best common ancestor of two commits, or "" if the clone has none.
func (c *MergeChecker) MergeBase(ctx context.Context, a, b string) (string, error) {
	return c.line(ctx, "merge-base", a, b)
}

// A noMerge is the error for a commit that is not what a claim says.
type noMerge struct{ reason string }

func (e noMerge) Error() string { return e.reason }

func noMergef(format string, args ...any) error { return noMerge{fmt.Sprintf(format, args...)} }

// IsNoMerge reports whether an error says that a commit is not the merge that was claimed.
func IsNoMerge(err error) bool {
	_, ok := errors.AsType[noMerge](err)
	return ok
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

// check returns an error if the commit is not what the claim says, or if git cannot tell.
func (c mergeCheck) check(ctx context.Context) error {
	if err := c.readCommit(ctx); err != nil {
		return err
	}
	if err := c.checkBases(ctx); err != nil {
		return err
	}
	return c.checkTree(ctx)
}

// readCommit reads the commit's tree and parents. It refuses a commit that does not have the parents of the kind.
func (c mergeCheck) readCommit(ctx context.Context) error {
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
		return noMergef("%s is the commit itself: name the commit that was merged into it", short)
	case len(parents) == 0:
		return noMergef("commit %s has no parent, so it merges nothing", short)
	case c.Kind == attestation.Rebased:
		return c.checkOnto(ctx)
	case c.Kind == attestation.Updated && len(parents) == 2 && slices.Contains(parents, c.Parent):
		return c.checkUpdated(ctx, parents)
	case len(parents) > 2:
		return noMergef("commit %s merges %d commits at once: only merges of two can be checked", short, len(parents)-1)
	}
	return c.checkParents(parents)
}

// checkParents refuses a commit that does not have the parents of a merge, an update or a squash.
func (c mergeCheck) checkParents(parents []string) error {
	short := ledger.Short(c.Commit)
	isSquash := c.Kind == attestation.Squashed
	switch {
	case isSquash && len(parents) == 2:
		return noMergef("commit %s has two parents: it is not a squash (use --merge-of)", short)
	case !isSquash && len(parents) == 1:
		return noMergef("commit %s has one parent: it is not a merge (use --squash-of)", short)
	}
	if !isSquash && parents[0] == c.Source && parents[1] == c.Parent {
		return nil
	}
	if c.Parent = cmp.Or(c.Parent, parents[0]); c.Parent != parents[0] {
		return noMergef("commit %s has the parent %s, not %s", short, ledger.Short(parents[0]), ledger.Short(c.Parent))
	}
	if !isSquash && parents[1] != c.Source {
		return noMergef("commit %s merges %s, not %s", short, ledger.Short(parents[1]), ledger.Short(c.Source))
	}
	return nil
}

// checkUpdated refuses an update of a branch that does not have the source.
func (c mergeCheck) checkUpdated(ctx context.Context, parents []string) error {
	branch := parents[0]
	if branch == c.Parent {
		branch = parents[1]
	}
	out, err := c.Read(ctx, "rev-list", "--max-count=1", c.Source, "^"+branch)
	switch {
	case err != nil:
		return err
	case out == "":
		return nil
	case c.shallow:
		return fmt.Errorf("this shallow clone may lack the history between %s and %s: %w", ledger.Short(c.Source),
			ledger.Short(branch), ErrDeepen)
	}
	return noMergef("commit %s merges %s, which does not contain %s", ledger.Short(c.Commit), ledger.Short(branch),
		ledger.Short(c.Source))
}

// checkOnto refuses a rebase that was not put on the parent.
func (c mergeCheck) checkOnto(ctx context.Context) error {
	out, err := c.Read(ctx, "rev-list", "--first-parent", "--skip=1",
		"--max-count="+strconv.Itoa(attestation.MaxRebased), c.Commit)
	if err != nil {
		return err
	}
	line := strings.Fields(out)
	switch {
	case slices.Contains(line, c.Parent):
		return nil
	case c.shallow && len(line) < attestation.MaxRebased:
		return fmt.Errorf("this shallow clone lacks first parents of %s: %w", ledger.Short(c.Commit), ErrDeepen)
	}
	return noMergef("%s is not among the %d first parents before %s", ledger.Short(c.Parent), attestation.MaxRebased,
		ledger.Short(c.Commit))
}

// checkBases refuses commits without a merge base, and a source that the parent contains. In
// a shallow clone, the missing history must not matter.
func (c mergeCheck) checkBases(ctx context.Context) error {
	present, err := c.present(ctx, "commit", []string{c.Parent})
	if err != nil {
		return err
	}
	if !present[c.Parent] {
		return fmt.Errorf("the parent, %s, is not in this clone: %w", ledger.Short(c.Parent), ErrDeepen)
	}
	out, err := c.line(ctx, "merge-base", "--all", c.Parent, c.Source)
	if err != nil {
		return err
	}

	bases := strings.Fields(out)
	switch {
	case slices.Contains(bases, c.Source):
		return noMergef("the parent, %s, already contains %s: there is nothing to merge", ledger.Short(c.Parent),
			ledger.Short(c.Source))
	case len(bases) == 0 && c.shallow:
		return fmt.Errorf("this shallow clone has no common ancestor of %s and %s: %w", ledger.Short(c.Parent),
			ledger.Short(c.Source), ErrDeepen)
	case len(bases) == 0:
		return noMergef("%s and %s have no common ancestor", ledger.Short(c.Parent), ledger.Short(c.Source))
	case len(bases) > 1 && c.Kind == attestation.Rebased:
		return noMergef("%s and %s have %d merge bases: only a rebase with one can be checked", ledger.Short(c.Parent),
			ledger.Short(c.Source), len(bases))
	case !c.shallow:
		return nil
	}
	return c.checkShallow(ctx, bases)
}

// checkShallow refuses merge bases that may not be the best ones, because the clone lacks
// history above them.
func (c mergeCheck) checkShallow(ctx context.Context, bases []string) error {
	end, err := c.endAbove(ctx, bases, c.Parent, c.Source)
	if err != nil || end == "" {
		return err
	}
	return fmt.Errorf("this shallow clone ends at %s, so that the merge base is uncertain: %w",
		ledger.Short(end), ErrDeepen)
}

// checkTree merges the parent and the source, and compares the result with the commit.
func (c mergeCheck) checkTree(ctx context.Context) error {
	tree, conflicts, err := c.mergeTree(ctx)
	switch {
	case err != nil:
		return err
	case conflicts != nil:
		return noMergef("commit %s is not a clean merge of %s and %s: they conflict in %s", ledger.Short(c.Commit),
			ledger.Short(c.Parent), ledger.Short(c.Source), namePaths(conflicts))
	case tree == c.Tree:
		return nil
	}

	// The objects of the merge are in the temporary folder.
	out, err := c.writable().Read(ctx, "diff-tree", "-r", "-z", "--name-only", "--no-renames", tree, c.Tree)
	if err != nil {
		return err
	}
	return noMergef("commit %s is not a clean merge of %s and %s: it differs from what git makes of them in %s",
		ledger.Short(c.Commit), ledger.Short(c.Parent), ledger.Short(c.Source), namePaths(splitNull(out)))
}

// mergeTree merges the parent and the source. It returns the tree, or the paths in
// conflict.
func (c mergeCheck) mergeTree(ctx context.Context) (tree string, conflicts []string, err error) {
	command := c.writable().command(ctx, "-c", "merge.renames=true", "-c", "merge.renameLimit=7000",
		"-c", "merge.directoryRenames=conflict", "-c", "merge.renormalize=false",
		"merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", c.Parent, c.Source)
	stdout := output{max: c.maxOutput}
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
