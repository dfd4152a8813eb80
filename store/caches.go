package store

import (
	"sync/atomic"

	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/where"
	"github.com/ledgerd/ledgerd/store/txn"
)

// caches holds database rows that never change under their key. The rows that a
// write has inserted are evicted if it is rolled back. Only the writer adds evidence and
// people.
type caches struct {
	evidence *txn.Cache[int64, policy.Evidence] // by row id of the attestation
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
	maxNames     = 10_000
	maxEvidence  = 20_000
	maxVerdicts  = 50_000
	maxPrograms  = 500
)

func newCaches() *caches {
	return &caches{
		evidence: txn.NewCache[int64, policy.Evidence](maxEvidence),

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
	m.evidence.Clear()
	m.expressions.Clear()
	m.verdicts.Clear()
}
