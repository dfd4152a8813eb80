package store

import (
	"sync/atomic"

	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/where"
	"github.com/ledgerd/ledgerd/store/internal/cursor"
)

// caches holds database rows that never change under their key. The rows that a
// write has inserted are evicted if it is rolled back. Only the writer adds evidence and
// people.
type caches struct {
	contracts  *cache[string, *policy.Contract] // by digest
	keyrings   *cache[string, versionedKeyring] // the latest keyring, by org
	parseRoot  identity.RootParser              // makes their trusted roots
	predicates *cache[int64, string]            // names, by row id
	types      *cache[int64, string]            // URIs of predicate types, by row id
	signers    *cache[int64, signerName]        // by row id
	evidence   *cache[int64, policy.Evidence]   // by row id of the attestation
	rows       *cache[nameKey, int64]           // row ids of predicates, types, signers and keys
	people     *cache[personKey, who]           // by whom a signature is
	named      *cache[namesKey, struct{}]       // signers whose names are stored
	// expressions holds row ids; verdicts holds what is stored.
	expressions *cache[string, int64]
	programs    *cache[string, *where.Program] // by expression
	// active holds contracts with expressions, by repoKey. They were active when the repo's
	// last attestation was recorded.
	active   *cache[string, *policy.Contract]
	verdicts *cache[verdictKey, policy.Verdict]
	tiles    *cache[tileKey, []byte] // hashes of tiles, which may be newer than the full ones
	cursors  *cursor.Sealer          // set when the database is opened
	// orgOfRepo and orgOfWebhook hold row ids of orgs, by row id and by id.
	orgOfRepo    *cache[int64, int64]
	orgOfWebhook *cache[string, int64]
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
	maxTiles     = 1000 // of up to 8 KiB
)

// A versionedKeyring is a keyring with its version.
type versionedKeyring struct {
	version int64
	keyring *identity.Keyring
}

func newCaches() *caches {
	return &caches{
		contracts:  newCache[string, *policy.Contract](maxContracts),
		keyrings:   newCache[string, versionedKeyring](maxKeyrings),
		predicates: newCache[int64, string](maxNames),
		types:      newCache[int64, string](maxNames),
		signers:    newCache[int64, signerName](maxNames),
		evidence:   newCache[int64, policy.Evidence](maxEvidence),
		rows:       newCache[nameKey, int64](maxNames),
		people:     newCache[personKey, who](maxNames),
		named:      newCache[namesKey, struct{}](maxNames),

		expressions:  newCache[string, int64](maxContracts),
		programs:     newCache[string, *where.Program](maxPrograms),
		active:       newCache[string, *policy.Contract](maxContracts),
		verdicts:     newCache[verdictKey, policy.Verdict](maxVerdicts),
		tiles:        newCache[tileKey, []byte](maxTiles),
		orgOfRepo:    newCache[int64, int64](maxNames),
		orgOfWebhook: newCache[string, int64](maxNames),
	}
}

// evictRows clears the caches that contain row ids: after a rollback, other rows
// get the same ids.
func (m *caches) evictRows() {
	m.rows.clear()
	m.people.clear()
	m.named.clear()
	m.predicates.clear()
	m.types.clear()
	m.signers.clear()
	m.evidence.clear()
	m.expressions.clear()
	m.verdicts.clear()
}
