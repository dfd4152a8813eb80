package session

import (
	"testing"
	"time"
)

// A value stays until it is taken or expires. If the pool is full, the one that expires first is removed.
func TestPool(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	pool := NewPool[int](3, func() time.Time { return now })
	var keys []string
	for n, life := range []time.Duration{3, 1, 2, 4} {
		keys = append(keys, pool.Add(n, life*time.Minute))
	}
	for n, key := range keys {
		if got, ok := pool.Get(key); ok != (n != 1) || ok && got != n {
			t.Errorf("value %d: %d, %t", n, got, ok)
		}
	}

	if got, ok := pool.Take(keys[0]); !ok || got != 0 {
		t.Errorf("took %d, %t", got, ok)
	}
	if _, ok := pool.Take(keys[0]); ok {
		t.Error("a value can be taken twice")
	}
	now = now.Add(2 * time.Minute)
	if _, ok := pool.Take(keys[2]); ok {
		t.Error("an expired value can be taken")
	}
	if _, ok := pool.Get(keys[3]); !ok {
		t.Error("another value has expired")
	}
}
