// Package record is the room of what is recorded: attestations with their effects, registrations, proofs of commits,
// corrections, claims of merges, and deployments. What it means for a commit is decided in the rooms below. Its tables
// are commit_objects, merges, deployments and environments; what is known of commits is written by the room of facts.
package record

import (
	"github.com/ledgerd/ledgerd/store/access"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/history"
	"github.com/ledgerd/ledgerd/store/lists"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A Recorder records what is sent. Its methods are safe for concurrent use, except those with a txn.Tx, which the
// writer's goroutine calls.
type Recorder struct {
	db      *txn.DB
	journal *events.Journal
	signers *signers.Signers
	access  *access.Access
	facts   *facts.Facts
	radar   *overlaps.Radar
	states  *states.States
	lists   *lists.Lists
	history *history.History

	// expected holds what is expected of repos, by repoKey: what was true when the repo's last attestation was
	// recorded.
	expected  *txn.Cache[string, expectation]
	deploying *deploying
}

// maxContracts limits the cached contracts, which may be large.
const maxContracts = 1000

// New returns the room of a database.
func New(
	db *txn.DB, journal *events.Journal, who *signers.Signers, may *access.Access, known *facts.Facts,
	radar *overlaps.Radar, machine *states.States, listed *lists.Lists, past *history.History,
) *Recorder {
	return &Recorder{
		db: db, journal: journal, signers: who, access: may, facts: known, radar: radar, states: machine, lists: listed,
		history:  past,
		expected: txn.NewCache[string, expectation](maxContracts), deploying: newDeploying(db),
	}
}
