package store

import (
	"sync"

	"github.com/ledgerd/ledgerd/ledger"
)

// A cache remembers values by key, up to a bound: past it the cache starts
// again. No lock is held while a value is read from the database, so that two
// callers may read the same one.
type cache[K comparable, V any] struct {
	bound int

	mu sync.RWMutex
	m  map[K]V
}

func newCache[K comparable, V any](bound int) *cache[K, V] {
	return &cache[K, V]{bound: bound, m: make(map[K]V)}
}

func (c *cache[K, V]) get(key K) (V, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, ok := c.m[key]
	return v, ok
}

func (c *cache[K, V]) put(key K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.m[key]; !known && len(c.m) >= c.bound {
		clear(c.m)
	}
	c.m[key] = v
}

func (c *cache[K, V]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.m)
}

// memory is what the store remembers of rows that never change under their key.
// The names that a write has inserted are forgotten if it is undone.
type memory struct {
	contracts  *cache[string, *ledger.Contract] // by digest
	keyrings   *cache[string, versionedKeyring] // the latest by org
	predicates *cache[int64, string]            // names by row
	types      *cache[int64, string]            // URIs of predicate types by row
	signers    *cache[int64, ledger.DN]         // by row
	rows       *cache[nameKey, int64]           // of all of these, and of keys
}

// The bounds of the caches. A keyring or a contract may be large.
const (
	maxContracts = 1000
	maxKeyrings  = 1000
	maxNames     = 10_000
)

// forgetNames forgets the rows of names: what was inserted is undone.
func (m *memory) forgetNames() {
	m.rows.clear()
	m.predicates.clear()
	m.types.clear()
	m.signers.clear()
}

func newMemory() *memory {
	return &memory{
		contracts:  newCache[string, *ledger.Contract](maxContracts),
		keyrings:   newCache[string, versionedKeyring](maxKeyrings),
		predicates: newCache[int64, string](maxNames),
		types:      newCache[int64, string](maxNames),
		signers:    newCache[int64, ledger.DN](maxNames),
		rows:       newCache[nameKey, int64](maxNames),
	}
}
