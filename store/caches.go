package store

import (
	"sync/atomic"

	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/where"
	"github.com/ledgerd/ledgerd/store/txn"
)

// caches holds database rows that never change under their key. The rows that a
// write has inserted are evicted if it is rolled back. Only the writer adds evidence and
// people.
type caches struct {
	contracts  *txn.Cache[string, *policy.Contract] // by digest
	keyrings   *txn.Cache[string, versionedKeyring] // the latest keyring, by org
	parseRoot  identity.RootParser                  // makes their trusted roots
	predicates *txn.Cache[int64, string]            // names, by row id
	types      *txn.Cache[int64, string]            // URIs of predicate types, by row id
	signers    *txn.Cache[int64, signerName]        // by row id
	evidence   *txn.Cache[int64, policy.Evidence]   // by row id of the attestation
	rows       *txn.Cache[nameKey, int64]           // row ids of predicates, types, signers and keys
	people     *txn.Cache[personKey, who]           // by whom a signature is
	named      *txn.Cache[namesKey, struct{}]       // signers whose names are stored
	// expressions holds row ids; verdicts holds what is stored.
	expressions *txn.Cache[string, int64]
	programs    *txn.Cache[string, *where.Program] // by expression
	// active holds contracts with expressions, by repoKey. They were active when the repo's
	// last attestation was recorded.
	active   *txn.Cache[string, *policy.Contract]
	verdicts *txn.Cache[verdictKey, policy.Verdict]
	// orgOfRepo holds row ids of orgs, by row id.
	orgOfRepo *txn.Cache[int64, int64]
	// mapped reports whether all statements are mapped by the present rules. Until then,
	// any process may change evidence, and what is cached of it is not used.
	mapped atomic.Bool
}

// Sizes of the caches. A keyring or a contract may be large.
const (
	maxContracts = 1000
	maxKeyrings  = 1000
	maxNames     = 10_000
	maxEvidence  = 20_000
	maxTouched   = 10_000
	maxVerdicts  = 50_000
	maxPrograms  = 500
)

// A versionedKeyring is a keyring with its version.
type versionedKeyring struct {
	version int64
	keyring *identity.Keyring
}

func newCaches() *caches {
	return &caches{
		contracts:  txn.NewCache[string, *policy.Contract](maxContracts),
		keyrings:   txn.NewCache[string, versionedKeyring](maxKeyrings),
		predicates: txn.NewCache[int64, string](maxNames),
		types:      txn.NewCache[int64, string](maxNames),
		signers:    txn.NewCache[int64, signerName](maxNames),
		evidence:   txn.NewCache[int64, policy.Evidence](maxEvidence),
		rows:       txn.NewCache[nameKey, int64](maxNames),
		people:     txn.NewCache[personKey, who](maxNames),
		named:      txn.NewCache[namesKey, struct{}](maxNames),

		expressions: txn.NewCache[string, int64](maxContracts),
		programs:    txn.NewCache[string, *where.Program](maxPrograms),
		active:      txn.NewCache[string, *policy.Contract](maxContracts),
		verdicts:    txn.NewCache[verdictKey, policy.Verdict](maxVerdicts),
		orgOfRepo:   txn.NewCache[int64, int64](maxNames),
	}
}

// evictRows clears the caches that contain row ids: after a rollback, other rows
// get the same ids.
func (m *caches) evictRows() {
	m.rows.Clear()
	m.people.Clear()
	m.named.Clear()
	m.predicates.Clear()
	m.types.Clear()
	m.signers.Clear()
	m.evidence.Clear()
	m.expressions.Clear()
	m.verdicts.Clear()
}
