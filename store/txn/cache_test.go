package txn

import "testing"

// A cache holds at most as many values as its size, those that were used last among them.
func TestCacheIsBounded(t *testing.T) {
	const size = 10
	c := NewCache[int, int](size)
	for i := range 100 {
		c.Put(i, i)
		c.Get(0)
		if n := len(c.new) + len(c.old); n > size {
			t.Fatalf("the cache holds %d values, want at most %d", n, size)
		}
		if v, ok := c.Get(i); !ok || v != i {
			t.Errorf("the cache has %d, %t for the key %d", v, ok, i)
		}
	}
	if _, ok := c.Get(0); !ok {
		t.Error("a value that was used all the time was evicted")
	}
	c.Clear()
	if _, ok := c.Get(0); ok {
		t.Error("a value was not cleared")
	}
}
