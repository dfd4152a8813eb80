package txn

import "sync"

// A Cache holds at most size values by key, in two generations. When the new
// generation is full, it becomes the old one, and the previous old one is evicted.
// Get moves a value to the new generation. A cache is safe for concurrent use. It
// is not locked while a value is read from the database, so two callers may read
// the same value.
type Cache[K comparable, V any] struct {
	size int

	mu       sync.RWMutex
	new, old map[K]V // each at most half of size
}

// NewCache returns an empty cache of at most size values.
func NewCache[K comparable, V any](size int) *Cache[K, V] {
	return &Cache[K, V]{size: size, new: make(map[K]V)}
}

// Get returns the value of a key, and whether it is cached.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	c.mu.RLock()
	v, ok := c.new[key]
	old := false
	if !ok {
		v, old = c.old[key]
	}
	c.mu.RUnlock()
	if old {
		c.Put(key, v)
	}
	return v, ok || old
}

// Put caches the value of a key.
func (c *Cache[K, V]) Put(key K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(key, v)
}

func (c *Cache[K, V]) add(key K, v V) {
	if _, ok := c.new[key]; !ok && len(c.new) >= c.size/2 {
		c.new, c.old = make(map[K]V), c.new
	}
	c.new[key] = v
}

// Clear evicts all values.
func (c *Cache[K, V]) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.new, c.old = make(map[K]V), nil
}
