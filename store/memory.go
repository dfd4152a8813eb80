package store

import (
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// memory is what the store remembers of rows that never change under their key.
// What a write has inserted is forgotten if the write is undone.
type memory struct {
	contracts  *cache[string, *policy.Contract] // by digest
	keyrings   *cache[string, versionedKeyring] // the latest by org
	predicates *cache[int64, string]            // names by row
	types      *cache[int64, string]            // URIs of predicate types by row
	signers    *cache[int64, signerName]        // by row
	evidence   *cache[int64, policy.Evidence]   // by row of the attestation
	rows       *cache[nameKey, int64]           // of all of these, and of keys
}

// The bounds of the caches. A keyring or a contract may be large.
const (
	maxContracts = 1000
	maxKeyrings  = 1000
	maxNames     = 10_000
	maxEvidence  = 20_000
)

// A versionedKeyring is a keyring and the version of the identities in it.
type versionedKeyring struct {
	version int64
	keyring *identity.Keyring
}

func newMemory() *memory {
	return &memory{
		contracts:  newCache[string, *policy.Contract](maxContracts),
		keyrings:   newCache[string, versionedKeyring](maxKeyrings),
		predicates: newCache[int64, string](maxNames),
		types:      newCache[int64, string](maxNames),
		signers:    newCache[int64, signerName](maxNames),
		evidence:   newCache[int64, policy.Evidence](maxEvidence),
		rows:       newCache[nameKey, int64](maxNames),
	}
}

// forgetRows forgets what has been remembered by row: rows that were inserted are
// undone, and others will take their place.
func (m *memory) forgetRows() {
	m.rows.clear()
	m.predicates.clear()
	m.types.clear()
	m.signers.clear()
	m.evidence.clear()
}
