package attestation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/glob"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// mergePrefix is the prefix of the predicates of merges, which the ledger reserves.
const mergePrefix = "merge:"

// A MergeKind says how a commit was merged.
type MergeKind string

// The kinds of merges. A squash has one parent, the commit of the mainline. A merge and an update have two, the commit
// of the mainline and the source, in either order. A rebase has the commit of the mainline among its first parents.
const (
	Merged   MergeKind = "merge"  // a branch came to the mainline
	Squashed MergeKind = "squash" // the same, as one commit
	Updated  MergeKind = "update" // the mainline came to a branch
	Rebased  MergeKind = "rebase" // a branch was put on the mainline
)

// MergeKinds lists the kinds.
func MergeKinds() []MergeKind { return []MergeKind{Merged, Squashed, Updated, Rebased} }

// A Merge is the body of the predicate type for merges: a claim that the tree of a commit
// is exactly what git makes of a commit of the mainline and another commit, the source.
type Merge struct {
	// Repo is the repo that the claim is for, as org/name.
	Repo   string       `json:"repo"`
	Kind   MergeKind    `json:"kind"`
	Source MergedCommit `json:"source"`
	// Parent is the commit of the mainline, which the forge protects. Of a rebase, it is the one on which the branch
	// was put.
	Parent MergedCommit `json:"parent"`
	// Tree is the tree of the commit.
	Tree string `json:"tree"`
	// Tools has the versions of the programs that checked it, by name.
	Tools map[string]string `json:"tools,omitempty"`
	// StartedOn and FinishedOn make the statements of two checks differ.
	StartedOn  ledger.Time `json:"startedOn,omitzero"`
	FinishedOn ledger.Time `json:"finishedOn,omitzero"`
}

// A MergedCommit is one of the two commits that were merged.
type MergedCommit struct {
	SHA string `json:"sha"`
}

// MergePredicate returns the predicate of claims of a kind.
func MergePredicate(kind MergeKind) string { return mergePrefix + string(kind) }

// check returns an error for the first invalid field.
func (m *Merge) check() error {
	switch {
	case m.Repo == "":
		return mergeFault("repo", "required (use e.g. acme/api): a claim is for one repo")
	case !isRepo(m.Repo):
		return mergeFault("repo", "%q is not a repo (use e.g. acme/api)", text.Clip(m.Repo))
	case !slices.Contains(MergeKinds(), m.Kind):
		return mergeFault("kind", "%q is not a kind of merge (use one of %s, %s, %s or %s)", text.Clip(string(m.Kind)),
			Merged, Squashed, Updated, Rebased)
	}

	for _, id := range []struct{ field, value string }{
		{"source.sha", m.Source.SHA}, {"parent.sha", m.Parent.SHA}, {"tree", m.Tree},
	} {
		if !ledger.IsCommit(id.value) {
			return mergeFault(id.field, "%q is not a full object ID (use 40 or 64 lower-case hex digits)", text.Clip(id.value))
		}
		if len(id.value) != len(m.Source.SHA) {
			return mergeFault(id.field, "%s is of another hash function than source.sha", text.Clip(id.value))
		}
	}
	if m.Parent == m.Source {
		return mergeFault("parent.sha", "must be another commit than source.sha")
	}
	return nil
}

// checkCommit refuses a claim that cannot be about a commit.
func (m *Merge) checkCommit(commit string) error {
	switch {
	case len(m.Source.SHA) != len(commit):
		return mergeFault("source.sha", "is of another hash function than the commit")
	case m.Source.SHA == commit:
		return mergeFault("source.sha", "is the commit itself")
	case m.Parent.SHA == commit:
		return mergeFault("parent.sha", "is the commit itself")
	}
	return nil
}

// MaxRebased is how far a rebased commit may be from the one on which the branch was put, by first parents.
const MaxRebased = 200

// WhyNot says why a commit with a tree and parents is not what m claims. It is empty if it may be: where the commit of
// the mainline is in the history of a rebase, and the source in that of an update, is not known.
func (m *Merge) WhyNot(tree string, parents []string) string {
	switch isParent := slices.Contains(parents, m.Parent.SHA); {
	case tree != m.Tree:
		return fmt.Sprintf("the claim is about the tree %s, but the commit has %s", ledger.Short(m.Tree), ledger.Short(tree))
	case m.Kind == Rebased:
		return ""
	case !isParent:
		return ledger.Short(m.Parent.SHA) + " is not a parent of the commit"
	case m.Kind == Squashed && len(parents) != 1:
		return fmt.Sprintf("a squash has one parent, but the commit has %d", len(parents))
	case m.Kind == Updated && len(parents) != 2:
		return fmt.Sprintf("an update has two parents, but the commit has %d", len(parents))
	case m.Kind == Merged && (len(parents) != 2 || !slices.Contains(parents, m.Source.SHA)):
		return ledger.Short(m.Source.SHA) + " is not the other of two parents of the commit"
	}
	return ""
}

// Updated returns the parent of an update to which the mainline came, which is the source or comes after it. parents
// are those of the commit, of which WhyNot says that they agree with the claim. For other kinds, it is empty.
func (m *Merge) Updated(parents []string) string {
	if m.Kind != Updated {
		return ""
	}
	if parents[0] == m.Parent.SHA {
		return parents[1]
	}
	return parents[0]
}

// Changes is the body of the predicate type for change records: a commit differs from another one, the base, in these
// paths and in no others. It has no time, so that the same record is recorded once.
type Changes struct {
	// Repo is the repo that the record is for, as org/name.
	Repo string `json:"repo"`
	Base string `json:"base"`
	// Paths are sorted, and have the old paths of renames, too.
	Paths []string `json:"paths"`
}

// MaxChangedPaths limits the paths of a change record: globs are not matched with more.
const MaxChangedPaths = glob.MaxMatched

// maxPath is the longest path of a change record, in bytes.
const maxPath = 4096

// check returns an error for the first invalid field.
func (c *Changes) check() error {
	switch {
	case c.Repo == "":
		return fault("repo", "required (use e.g. acme/api): a change record is for one repo")
	case !isRepo(c.Repo):
		return fault("repo", "%q is not a repo (use e.g. acme/api)", text.Clip(c.Repo))
	case !ledger.IsCommit(c.Base):
		return fault("base", "%q is not a full object ID (use 40 or 64 lower-case hex digits)", text.Clip(c.Base))
	case c.Paths == nil:
		return fault("paths", "required: the changed paths, or [] if there are none")
	case len(c.Paths) > MaxChangedPaths:
		return fault("paths", "too many: %d, at most %d (without a record, the commit may have changed any path)",
			len(c.Paths), MaxChangedPaths)
	}

	for i, path := range c.Paths {
		switch field := text.Entry("paths", i); {
		case path == "" || len(path) > maxPath:
			return fault(field, "has %d bytes (use 1 to %d)", len(path), maxPath)
		case strings.HasPrefix(path, "/") || strings.Contains(path, "\x00"):
			return fault(field, "%q is not a path as git lists it", text.Clip(path))
		case i > 0 && path <= c.Paths[i-1]:
			return fault(field, "%q does not follow the path before it (sort the paths, each once)", text.Clip(path))
		}
	}
	return nil
}

// checkCommit refuses a record that cannot be about a commit.
func (c *Changes) checkCommit(commit string) error {
	switch {
	case len(c.Base) != len(commit):
		return fault("base", "is of another hash function than the commit")
	case c.Base == commit:
		return fault("base", "is the commit itself")
	}
	return nil
}

func mergeFault(field, format string, args ...any) error {
	return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate."+field, format, args...)
}
