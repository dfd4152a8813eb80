// Package facts is the room of what is known of commits, as their policies read it: registrations, attestations with
// their evidence and exceptions, claims of merges, and what carries between commits. What follows for the state of a
// commit is decided in the room of states. Its tables are commits, commit_details, corrections, attestations,
// envelopes, latest, verdicts, expressions, exceptions, change_records, trees, tree_latest, merge_sides and artifacts.
package facts

import (
	"sync/atomic"

	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/history"
	"github.com/ledgerd/ledgerd/store/policies"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Facts has what is known of commits. Its methods are safe for concurrent use, except those with a txn.Tx, which the
// writer's goroutine calls.
type Facts struct {
	db       *txn.DB
	journal  *events.Journal
	policies *policies.Contracts
	signers  *signers.Signers
	history  *history.History

	// The caches hold rows that never change under their key. The rows that a write has inserted are evicted if
	// it is rolled back. Only the writer adds evidence.
	evidence    *txn.Cache[int64, policy.Evidence] // by row id of the attestation
	expressions *txn.Cache[string, int64]          // row ids
	verdicts    *txn.Cache[verdictKey, policy.Verdict]
	mapped      atomic.Bool // see IsMapped

	writing
}

// A verdictKey identifies what an expression says of an attestation, by row ids.
type verdictKey struct{ attestation, expression int64 }

// Sizes of the caches.
const (
	maxEvidence    = 20_000
	maxExpressions = 1000
	maxVerdicts    = 50_000
)

// New returns the room of a database.
func New(
	db *txn.DB, journal *events.Journal, jobs *backlog.Jobs, contracts *policies.Contracts, who *signers.Signers,
	past *history.History,
) *Facts {
	fa := &Facts{
		db: db, journal: journal, policies: contracts, signers: who, history: past,
		evidence:    txn.NewCache[int64, policy.Evidence](maxEvidence),
		expressions: txn.NewCache[string, int64](maxExpressions),
		verdicts:    txn.NewCache[verdictKey, policy.Verdict](maxVerdicts),
		writing:     newWriting(jobs),
	}
	db.Attach(txn.Part{
		Done: fa.done, Flush: fa.flush, Keep: fa.keep, Discard: fa.discard,
		BeforeCommit: fa.writeCounts, AfterCommit: fa.reset, AfterRollback: fa.rollBack,
	})
	return fa
}

// discard drops what a failed write has left in memory.
func (fa *Facts) discard() {
	if fa.cached {
		fa.Evict()
	}
	fa.writing.discard()
}

// rollBack drops what the writes of a failed transaction have left, before the next writes reuse the row ids.
func (fa *Facts) rollBack() {
	fa.Evict()
	fa.reset()
}

// Evict clears the caches that contain row ids: after a rollback, other rows get the same ids.
func (fa *Facts) Evict() {
	fa.evidence.Clear()
	fa.expressions.Clear()
	fa.verdicts.Clear()
}
