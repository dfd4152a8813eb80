package session

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

// A Pool holds values by secret keys until they are taken or expire. It is in memory only. Its methods are
// safe for concurrent use.
type Pool[T any] struct {
	max int
	now func() time.Time

	mu     sync.Mutex
	values map[[sha256.Size]byte]pooled[T] // by the digest of the key
}

type pooled[T any] struct {
	value   T
	expires time.Time
}

// NewPool returns an empty pool. If it has more than limit values, the one that expires first is removed.
func NewPool[T any](limit int, now func() time.Time) *Pool[T] {
	return &Pool[T]{max: limit, now: now, values: make(map[[sha256.Size]byte]pooled[T])}
}

// Add adds a value for a time, and returns its key.
func (p *Pool[T]) Add(v T, lifetime time.Duration) (key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.values) >= p.max {
		p.removeFirst()
	}
	key = rand.Text()
	p.values[sha256.Sum256([]byte(key))] = pooled[T]{v, p.now().Add(lifetime)}
	return key
}

// removeFirst removes the value that expires first.
func (p *Pool[T]) removeFirst() {
	var first [sha256.Size]byte
	for digest, v := range p.values {
		if oldest, ok := p.values[first]; !ok || v.expires.Before(oldest.expires) {
			first = digest
		}
	}
	delete(p.values, first)
}

// Get returns the value of a key, which stays in the pool.
func (p *Pool[T]) Get(key string) (v T, ok bool) { return p.find(key, false) }

// Take returns the value of a key, and removes it.
func (p *Pool[T]) Take(key string) (v T, ok bool) { return p.find(key, true) }

func (p *Pool[T]) find(key string, remove bool) (v T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	digest := sha256.Sum256([]byte(key))
	found, ok := p.values[digest]
	if !ok || !p.now().Before(found.expires) {
		return v, false
	}
	if remove {
		delete(p.values, digest)
	}
	return found.value, true
}
