package store

import "sync"

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
