package store

import "sync"

// A cache holds at most size values by key, in two generations. When the new
// generation is full, it becomes the old one, and the previous old one is evicted.
// A get moves a value to the new generation. A cache is safe for concurrent use. It
// is not locked while a value is read from the database, so two callers may read
// the same value.
type cache[K comparable, V any] struct {
	size int

	mu       sync.RWMutex
	new, old map[K]V // each at most half of size
}

func newCache[K comparable, V any](size int) *cache[K, V] {
	return &cache[K, V]{size: size, new: make(map[K]V)}
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
	if _, ok := c.new[key]; !ok && len(c.new) >= c.size/2 {
		c.new, c.old = make(map[K]V), c.new
	}
	c.new[key] = v
}

func (c *cache[K, V]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.new, c.old = make(map[K]V), nil
}
