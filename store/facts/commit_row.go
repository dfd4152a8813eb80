package facts

import (
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A CommitRow holds the columns of a commit from which its state is derived.
type CommitRow struct {
	ID           int64
	RepoID       int64
	SHA          string
	State        ledger.State
	StateSince   ledger.Time
	registeredAt ledger.Time
	// Standing is that of a commit in DEPLOYED, if it is kept; DEPLOYED if it is not.
	Standing      ledger.State
	PolicyVersion int         // the version under which the state was derived
	Expires       ledger.Time // when evidence or an overlap on which the state depends expires
	Attestations  int64
	Newest        int64 // row id of the newest attestation; 0 if the commit has no attestations
	Branch        string
	Target        string // the newest
	Author        ledger.Author
	Claims        claims
	Tree          string // of its object; empty if it is not known
	TreeID        int64  // 0: no other commit has the tree
	Merged        MergeRole
	Gap           bool  // an object was not known when the state was derived
	Basis         int64 // Commit.Versions when the state was derived
	Distrusts     int64 // how often evidence of the org had been distrusted then
	// FailingSince is since when a fail or error blocks a requirement, or the kept standing is below
	// PROMOTABLE; 0 if neither is so.
	FailingSince ledger.Time

	// How this write has changed the commit since it was last buffered.
	isNew, isDirty, IsMoved bool
}

// A MergeRole says what claims of merges say of a commit.
type MergeRole int64

// The roles.
const (
	IsMerge  MergeRole = 1 << iota // it is a merge
	IsMerged                       // it was merged
	IsSide                         // it is the commit of the mainline in a merge
)

// IsProven reports whether the commit's object is known.
func (c *CommitRow) IsProven() bool { return c.Tree != "" }

// Inherits reports whether evidence of other commits may carry to the commit.
func (c *CommitRow) Inherits() bool { return c.TreeID != 0 || c.Merged&IsMerge != 0 }

// InheritsFrom reports whether evidence of another commit may carry to the commit.
func (c *CommitRow) InheritsFrom(other *CommitRow) bool {
	return c.TreeID != 0 && c.TreeID == other.TreeID || c.Merged&IsMerge != 0 && other.Merged&(IsMerged|IsSide) != 0
}

// IsNamed reports whether the evidence of the commit may change the state of others: it carries to them, or their
// claims name the commit.
func (c *CommitRow) IsNamed() bool { return c.IsInherited() || c.Merged&IsSide != 0 }

// IsInherited reports whether evidence of the commit may carry to others.
func (c *CommitRow) IsInherited() bool { return c.TreeID != 0 || c.Merged&IsMerged != 0 }

// KeepsStanding reports whether the standing of a commit is kept though it is DEPLOYED: it runs in
// an environment, or a claim of a merge names it as the source. What the standings of all other
// deployed commits are is derived when it is read.
func (c *CommitRow) KeepsStanding() bool {
	return c.State == ledger.Deployed && c.Standing != ledger.Deployed
}

// IsHistory reports whether nothing that is stored of a commit changes before its next attestation,
// or its next deployment.
func (c *CommitRow) IsHistory() bool { return c.State == ledger.Deployed && !c.KeepsStanding() }

// NoteFailed notes whether a requirement fails, and since when.
func (c *CommitRow) NoteFailed(failed bool, now ledger.Time) {
	switch {
	case failed && c.FailingSince == 0:
		c.FailingSince, c.IsMoved = now, true
	case !failed && c.FailingSince != 0:
		c.FailingSince, c.IsMoved = 0, true
	}
}

// ClaimedTargets returns all targets ever claimed for a commit, oldest first.
func (c *CommitRow) ClaimedTargets() []string {
	switch {
	case c.Claims.Targets != "":
		return strings.Split(c.Claims.Targets, "\n")
	case c.Target != "":
		return []string{c.Target}
	}
	return nil
}

// SelectCommitRow selects commits, for ScanCommitRow.
const SelectCommitRow = `
SELECT id, repo_id, sha, state, state_since, registered_at, policy_version, expires, attestations,
  newest, branch, target, author_name, author_email, targets, writers, signing_keys, tree, tree_id, merged, basis,
  distrusts, failing_since, standing, gap
FROM commits `

// ScanCommitRow scans a row of SelectCommitRow.
func ScanCommitRow(row txn.Scanner) (*CommitRow, error) {
	c := new(CommitRow)
	err := row.Scan(&c.ID, &c.RepoID, &c.SHA, &c.State, &c.StateSince, &c.registeredAt, &c.PolicyVersion,
		&c.Expires, &c.Attestations, &c.Newest, &c.Branch, &c.Target, &c.Author.Name, &c.Author.Email,
		&c.Claims.Targets, &c.Claims.Writers, &c.Claims.SigningKeys, &c.Tree, &c.TreeID, &c.Merged, &c.Basis, &c.Distrusts,
		&c.FailingSince, &c.Standing, &c.Gap)
	return c, err
}

// FindCommitRow reads a commit by its row id.
func FindCommitRow(rd txn.Reader, id int64) (*CommitRow, error) {
	return AskCommitRow(rd, id)()
}

// AskCommitRow asks the query of FindCommitRow.
func AskCommitRow(rd txn.Reader, id int64) func() (*CommitRow, error) {
	asked := txn.Ask(rd, ScanCommitRow, SelectCommitRow+"WHERE id = ?", id)
	return func() (*CommitRow, error) {
		c, err := asked()
		if err != nil {
			return nil, fmt.Errorf("read commit: %w", err)
		}
		return c, nil
	}
}
