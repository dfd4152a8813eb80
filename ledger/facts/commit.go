// Package facts says what states are derived from: what is known of a commit, and what an
// attestation says about it. The ledger and those who verify it read both in the same way.
package facts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// A Commit is what states are derived from that is known of a commit itself. The zero value,
// but for the ID, is a commit that was never registered.
type Commit struct {
	ID string `json:"commit"`
	// Tree is the root tree of its object. It is empty if the object is not known: the other
	// fields are then only claimed.
	Tree   string        `json:"tree,omitzero"`
	Author ledger.Author `json:"author,omitzero"`
	// Writers are those who were ever claimed to have written it with its author.
	Writers []ledger.Author `json:"writers,omitempty"`
	// SigningKeys are the fingerprints of the SSH keys that were ever claimed to have signed it.
	SigningKeys []string `json:"signing_keys,omitempty"`
	Branch      string   `json:"branch,omitzero"`
	// Targets are all targets ever claimed, oldest first.
	Targets []string `json:"targets,omitempty"`
	// Changes is the key of all paths ever claimed, as ChangesKey returns it. It is empty
	// without a change record.
	Changes string `json:"changes,omitzero"`
}

// Of returns the facts in a commit's record.
func Of(c *ledger.Commit) Commit {
	f := Commit{
		ID: c.SHA, Tree: c.Tree, Author: c.Author, Writers: c.Writers, SigningKeys: c.SigningKeys, Branch: c.Branch,
		Targets: c.Targets,
	}
	if c.Changes != nil {
		f.Changes = ChangesKey(ClaimedPaths(c))
	}
	return f
}

// ClaimedPaths returns all paths that the change records of a commit have ever claimed.
func ClaimedPaths(c *ledger.Commit) []string {
	if c.Paths != nil {
		return c.Paths
	}
	return Paths(c.Changes)
}

// Paths returns the paths of a change record, including the old paths of renames.
func Paths(changes []radar.Change) []string {
	paths := make([]string, 0, len(changes))
	for _, change := range changes {
		paths = append(paths, change.Path)
		if change.OldPath != "" {
			paths = append(paths, change.OldPath)
		}
	}
	return paths
}

// ManyChangesKey is the key of more paths than globs are matched with.
const ManyChangesKey = "many"

// ChangesKey returns a key of the paths that a commit changes: lists of paths with equal keys have
// the same scopes under every contract.
func ChangesKey(paths []string) string {
	if len(paths) > policy.MaxMatchedPaths {
		return ManyChangesKey
	}
	h := sha256.New()
	for _, path := range paths {
		h.Write(append([]byte(path), 0)) // never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

// IsRegistered reports whether anything is known of the commit.
func (c *Commit) IsRegistered() bool { return c.Sum() != (&Commit{ID: c.ID}).Sum() }

// Sum returns the SHA-256 of the facts as JSON, with its members in the order of the fields.
func (c *Commit) Sum() [sha256.Size]byte { return sha256.Sum256(text.JSON(c)) }

// Digest returns "sha256:" and Sum in hex.
func (c *Commit) Digest() string {
	sum := c.Sum()
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Authors returns everybody who wrote the commit. It is empty if the author is unknown: a
// committer alone does not say who wrote the commit.
func (c *Commit) Authors() []ledger.Author {
	if len(identity.AuthorNames([]ledger.Author{c.Author})) == 0 {
		return nil
	}
	return append([]ledger.Author{c.Author}, c.Writers...)
}

// Policy returns the facts in the form that a contract reads, in a repo with the given default
// branch: those of the commit itself, without the changed paths.
func (c *Commit) Policy(targets policy.TargetRule, defaultBranch string) policy.Facts {
	newest := defaultBranch
	if n := len(c.Targets); n > 0 {
		newest = c.Targets[n-1]
	}
	return policy.Facts{
		Authors: c.Authors(), SigningKeys: c.SigningKeys, Proven: c.Tree != "", Branch: c.Branch,
		Targets: targets.Targets(defaultBranch, c.Targets), Target: cmp.Or(newest, defaultBranch),
		HasChanges: c.Changes != "",
	}
}
