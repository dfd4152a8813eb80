// Package policy tells what follows from the attestations of a commit: the contract
// of a repo, what each of its requirements asks for, and the state that these give.
package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// A Contract is a repo's policy: what a commit needs to reach each state.
// Parse makes one from a document and fills in the defaults, so that
// a Contract says in full what holds.
type Contract struct {
	Requirements []Requirement `json:"requirements"`
	Radar        RadarSettings `json:"radar"`
}

// RadarSettings say what Conflict Radar does in a repo.
type RadarSettings struct {
	Enabled bool `json:"enabled"`
	// Notify is the lowest level that makes an event.
	Notify radar.Level `json:"notify"`
	// Block is the lowest level that keeps the later commit of an overlap from
	// being PROMOTABLE; NoLevel blocks nothing.
	Block radar.Level `json:"block"`
	// Ignore are globs of paths to leave out.
	Ignore []string `json:"ignore"`
	// MaxAge is how long a tip counts as in flight.
	MaxAge ledger.Duration `json:"max_age"`
}

// RecordFields names the members that a policy has beside its contract's.
// They are the ledger's to say, and passed over where a policy that was read is
// sent back.
func RecordFields() []string {
	return []string{"org", "repo", "version", "digest", "created_at", "created_by"}
}

// Default is what a new repo starts with: one test, one review and one
// deployment, each by anyone whom the org trusts.
func Default() Contract {
	one := func(s ledger.State, predicate string) Requirement {
		return Requirement{State: s, Predicate: predicate, Threshold: 1, Accept: []ledger.Status{ledger.Pass}}
	}
	return Contract{
		Requirements: []Requirement{one(ledger.Attested, "test:*"), one(ledger.Promotable, "review:*"),
			one(ledger.Deployed, "deploy:*")},
		Radar: defaultRadar(),
	}
}

func defaultRadar() RadarSettings {
	return RadarSettings{Enabled: true, Notify: radar.Low, Block: radar.NoLevel,
		MaxAge: ledger.Duration(30 * 24 * time.Hour)}
}

// Canonical returns the contract as one line of JSON with its defaults written
// out and its members in a fixed order: the same bytes for documents that
// differ in form only. Lists stay in the order in which they were given.
func (c Contract) Canonical() []byte { return text.JSON(c) }

// Digest returns "sha256:" and the hex SHA-256 of the canonical document.
func (c Contract) Digest() string {
	sum := sha256.Sum256(c.Canonical())
	return "sha256:" + hex.EncodeToString(sum[:])
}

// NeedsChanges reports whether some requirement depends on which paths a
// commit changes, so that a derivation must know them.
func (c Contract) NeedsChanges() bool {
	for i := range c.Requirements {
		if len(c.Requirements[i].Paths) > 0 {
			return true
		}
	}
	return false
}

// A Policy is one version of a repo's contract: the contract's own members
// beside what the ledger says of it.
type Policy struct {
	Org     string `json:"org"`
	Repo    string `json:"repo"`
	Version int    `json:"version"`
	// Digest is "sha256:" and the hex digest of the canonical contract.
	Digest    string      `json:"digest"`
	CreatedAt ledger.Time `json:"created_at"`
	CreatedBy string      `json:"created_by"`
	Contract  `json:",embed"`
}
