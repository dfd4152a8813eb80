package store

import (
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A commitRow holds the columns of a commit from which its state is derived.
type commitRow struct {
	id           int64
	repoID       int64
	sha          string
	state        ledger.State
	stateSince   ledger.Time
	registeredAt ledger.Time
	// standing is that of a commit in DEPLOYED, if it is kept; DEPLOYED if it is not.
	standing      ledger.State
	policyVersion int         // the version under which the state was derived
	expires       ledger.Time // when evidence or an overlap on which the state depends expires
	attestations  int64
	newest        int64 // row id of the newest attestation; 0 if the commit has no attestations
	branch        string
	target        string // the newest
	author        ledger.Author
	claims        claims
	tree          string // of its object; empty if it is not known
	treeID        int64  // 0: no other commit has the tree
	merged        mergeRole
	basis         int64 // see subject.versions; when the state was derived
	// failingSince is since when a fail or error blocks a requirement, or the kept standing is below
	// PROMOTABLE; 0 if neither is so.
	failingSince ledger.Time

	// How this write has changed the commit since it was last buffered.
	isNew, isDirty, isMoved bool
}

// A mergeRole says what claims of merges say of a commit.
type mergeRole int64

const (
	isMerge  mergeRole = 1 << iota // it is a merge
	isMerged                       // it was merged
)

// isProven reports whether the commit's object is known.
func (c *commitRow) isProven() bool { return c.tree != "" }

// inherits reports whether evidence of other commits may carry to the commit.
func (c *commitRow) inherits() bool { return c.treeID != 0 || c.merged&isMerge != 0 }

// inheritsFrom reports whether evidence of another commit may carry to the commit.
func (c *commitRow) inheritsFrom(other *commitRow) bool {
	return c.treeID != 0 && c.treeID == other.treeID || c.merged&isMerge != 0 && other.merged&isMerged != 0
}

// isInherited reports whether evidence of the commit may carry to others.
func (c *commitRow) isInherited() bool { return c.treeID != 0 || c.merged&isMerged != 0 }

// keepsStanding reports whether the standing of a commit is kept though it is DEPLOYED: it runs in
// an environment, or a claim of a merge names it as the source. What the standings of all other
// deployed commits are is derived when it is read.
func (c *commitRow) keepsStanding() bool {
	return c.state == ledger.Deployed && c.standing != ledger.Deployed
}

// isHistory reports whether nothing that is stored of a commit changes before its next attestation,
// or its next deployment.
func (c *commitRow) isHistory() bool { return c.state == ledger.Deployed && !c.keepsStanding() }

// noteFailed notes whether a requirement fails, and since when.
func (c *commitRow) noteFailed(failed bool, now ledger.Time) {
	switch {
	case failed && c.failingSince == 0:
		c.failingSince, c.isMoved = now, true
	case !failed && c.failingSince != 0:
		c.failingSince, c.isMoved = 0, true
	}
}

// claimedTargets returns all targets ever claimed for a commit, oldest first.
func (c *commitRow) claimedTargets() []string {
	switch {
	case c.claims.targets != "":
		return strings.Split(c.claims.targets, "\n")
	case c.target != "":
		return []string{c.target}
	}
	return nil
}

const selectCommitRow = `
SELECT id, repo_id, sha, state, state_since, registered_at, policy_version, expires, attestations,
  newest, branch, target, author_name, author_email, targets, writers, signing_keys, tree, tree_id, merged, basis,
  failing_since, standing
FROM commits `

const selectCommitByID = selectCommitRow + "WHERE id = ?"

func scanCommitRow(row txn.Scanner) (*commitRow, error) {
	c := new(commitRow)
	err := row.Scan(&c.id, &c.repoID, &c.sha, &c.state, &c.stateSince, &c.registeredAt, &c.policyVersion,
		&c.expires, &c.attestations, &c.newest, &c.branch, &c.target, &c.author.Name, &c.author.Email,
		&c.claims.targets, &c.claims.writers, &c.claims.signingKeys, &c.tree, &c.treeID, &c.merged, &c.basis, &c.failingSince,
		&c.standing)
	return c, err
}

func (rd reader) findCommitRow(id int64) (*commitRow, error) {
	c, err := scanCommitRow(rd.Row(selectCommitByID, id))
	if err != nil {
		return nil, fmt.Errorf("read commit: %w", err)
	}
	return c, nil
}
