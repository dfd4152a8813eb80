// Package signers is the room of who signs: the identities of orgs with their CAs and trusted roots, the names of
// signers, keys, predicates and types, and which signers are one person. Which statements count is decided in the
// rooms above. Its tables are identities, cas, trusted_roots, signers, signer_names, keys, predicates and
// predicate_types.
package signers

import (
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/policies"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Signers has the signers of orgs. Its methods are safe for concurrent use, except those with a txn.Tx, which the
// writer's goroutine calls.
type Signers struct {
	db        *txn.DB
	journal   *events.Journal
	jobs      *backlog.Jobs
	policies  *policies.Contracts
	parseRoot identity.RootParser // makes the trusted roots of keyrings

	// The caches hold rows that never change under their key. Only the writer adds to those with row ids.
	keyrings   *txn.Cache[string, VersionedKeyring] // the latest keyring, by org
	predicates *txn.Cache[int64, string]            // names, by row id
	types      *txn.Cache[int64, string]            // URIs of predicate types, by row id
	signers    *txn.Cache[int64, SignerName]        // by row id
	ids        *txn.Cache[NameKey, int64]           // row ids of predicates, types, signers and keys
	people     *txn.Cache[PersonKey, Who]           // by whom a signature is
	named      *txn.Cache[namesKey, struct{}]       // signers whose names are stored
	// cached reports whether they contain rows that the write which runs has inserted.
	cached bool
}

// Sizes of the caches. A keyring may be large.
const (
	maxKeyrings = 1000
	maxNames    = 10_000
)

// logIdentitiesBatch is the number of identities or signers that one write logs.
const logIdentitiesBatch = 50

// New returns the room of a database. parseRoot parses trusted roots.
func New(
	db *txn.DB, journal *events.Journal, jobs *backlog.Jobs, contracts *policies.Contracts, parseRoot identity.RootParser,
) *Signers {
	sg := &Signers{
		db: db, journal: journal, jobs: jobs, policies: contracts, parseRoot: parseRoot,
		keyrings:   txn.NewCache[string, VersionedKeyring](maxKeyrings),
		predicates: txn.NewCache[int64, string](maxNames),
		types:      txn.NewCache[int64, string](maxNames),
		signers:    txn.NewCache[int64, SignerName](maxNames),
		ids:        txn.NewCache[NameKey, int64](maxNames),
		people:     txn.NewCache[PersonKey, Who](maxNames),
		named:      txn.NewCache[namesKey, struct{}](maxNames),
	}
	db.Attach(txn.Part{Keep: func(*txn.Tx) { sg.cached = false }, Discard: sg.discard, AfterRollback: sg.Evict})
	return sg
}

// discard drops what a failed write has cached.
func (sg *Signers) discard() {
	if sg.cached {
		sg.Evict()
	}
}

// Evict clears the caches that contain row ids: after a rollback, other rows get the same ids.
func (sg *Signers) Evict() {
	sg.cached = false
	sg.ids.Clear()
	sg.people.Clear()
	sg.named.Clear()
	sg.predicates.Clear()
	sg.types.Clear()
	sg.signers.Clear()
}
