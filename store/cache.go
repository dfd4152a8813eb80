package store

import (
	"sync"

	"github.com/ledgerd/ledgerd/ledger"
)

// A cache remembers values by key, up to a bound: then it forgets those that were
// not asked for since half of the bound was put. No lock is held while a value is
// read from the database, so that two callers may read the same one.
type cache[K comparable, V any] struct {
	bound int

	mu       sync.RWMutex
	new, old map[K]V // each at most half of the bound
}

func newCache[K comparable, V any](bound int) *cache[K, V] {
	return &cache[K, V]{bound: bound, new: make(map[K]V)}
}

func (c *cache[K, V]) get(key K) (V, bool) {
	c.mu.RLock()
	v, ok := c.new[key]
	old := false
	if !ok {
		v, old = c.old[key]
	}
	c.mu.RUnlock()
	if old {
		c.put(key, v)
	}
	return v, ok || old
}

func (c *cache[K, V]) put(key K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(key, v)
}

func (c *cache[K, V]) add(key K, v V) {
	if _, known := c.new[key]; !known && len(c.new) >= c.bound/2 {
		c.new, c.old = make(map[K]V), c.new
	}
	c.new[key] = v
}

func (c *cache[K, V]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.new, c.old = make(map[K]V), nil
}

// memory is what the store remembers of rows that never change under their key.
// What a write has inserted is forgotten if the write is undone.
type memory struct {
	contracts  *cache[string, *ledger.Contract] // by digest
	keyrings   *cache[string, versionedKeyring] // the latest by org
	predicates *cache[int64, string]            // names by row
	types      *cache[int64, string]            // URIs of predicate types by row
	signers    *cache[int64, ledger.DN]         // by row
	evidence   *cache[int64, ledger.Evidence]   // by row of the attestation
	rows       *cache[nameKey, int64]           // of all of these, and of keys
}

// The bounds of the caches. A keyring or a contract may be large.
const (
	maxContracts = 1000
	maxKeyrings  = 1000
	maxNames     = 10_000
	maxEvidence  = 20_000
)

// forgetRows forgets what has been remembered by row: rows that were inserted are
// undone, and others will take their place.
func (m *memory) forgetRows() {
	m.rows.clear()
	m.predicates.clear()
	m.types.clear()
	m.signers.clear()
	m.evidence.clear()
}

func newMemory() *memory {
	return &memory{
		contracts:  newCache[string, *ledger.Contract](maxContracts),
		keyrings:   newCache[string, versionedKeyring](maxKeyrings),
		predicates: newCache[int64, string](maxNames),
		types:      newCache[int64, string](maxNames),
		signers:    newCache[int64, ledger.DN](maxNames),
		evidence:   newCache[int64, ledger.Evidence](maxEvidence),
		rows:       newCache[nameKey, int64](maxNames),
	}
}
