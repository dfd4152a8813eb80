// Package lookup answers those who look up keys at about the same time with one query.
package lookup

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
)

// A Group looks up keys. A query begins only after all callers that get its results have asked, so
// its values are not older than those that a query for each caller would have returned.
type Group[K comparable, V any] struct {
	turn chan struct{} // full while a query runs

	mu   sync.Mutex
	next *round[K, V] // the one that has not begun; nil if no caller waits for it
}

// A round is one query.
type round[K comparable, V any] struct {
	keys  map[K]bool    // until it begins
	done  chan struct{} // closed when the fields below are set
	found map[K]V
	err   error
}

// New returns a Group.
func New[K comparable, V any]() *Group[K, V] {
	return &Group[K, V]{turn: make(chan struct{}, 1)}
}

// Find looks up a key. The first caller that waits for a query runs it, with the keys of all.
func (l *Group[K, V]) Find(ctx context.Context, key K, query func([]K) (map[K]V, error)) (v V, ok bool, err error) {
	q, isFirst := l.join(key)
	if isFirst {
		l.run(q, query)
	}
	select {
	case <-q.done:
		v, ok = q.found[key]
		return v, ok, q.err
	case <-ctx.Done():
		return v, false, ctx.Err()
	}
}

// join adds a key to the next query.
func (l *Group[K, V]) join(key K) (q *round[K, V], isFirst bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if isFirst = l.next == nil; isFirst {
		l.next = &round[K, V]{keys: make(map[K]bool), done: make(chan struct{})}
	}
	l.next.keys[key] = true
	return l.next, isFirst
}

// errPanic is the error of a query that has panicked.
var errPanic = errors.New("the query has panicked")

// run runs a query when the one before it has ended.
func (l *Group[K, V]) run(q *round[K, V], query func([]K) (map[K]V, error)) {
	defer close(q.done)
	q.err = errPanic
	l.turn <- struct{}{}
	defer func() { <-l.turn }()

	l.mu.Lock()
	l.next = nil
	l.mu.Unlock()
	q.found, q.err = query(slices.Collect(maps.Keys(q.keys)))
}
