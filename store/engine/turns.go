package engine

import "slices"

// A turnQueue holds items that wait, by org. The items of an org leave in the order
// in which they came. Orgs take turns, so that one with many items does not delay the
// others.
type turnQueue[T comparable] struct {
	waiting map[string][]T
	orgs    []string // those with waiting items; the first one is next
	size    int      // the number of items
}

func newTurnQueue[T comparable]() *turnQueue[T] {
	return &turnQueue[T]{waiting: make(map[string][]T)}
}

// push adds an item of an org.
func (q *turnQueue[T]) push(org string, item T) {
	items := q.waiting[org]
	if len(items) == 0 {
		q.orgs = append(q.orgs, org)
	}
	q.waiting[org] = append(items, item)
	q.size++
}

// pop removes the first item of the org whose turn it is. It returns false if the
// queue is empty.
func (q *turnQueue[T]) pop() (item T, ok bool) {
	if q.size == 0 {
		return item, false
	}
	org := q.orgs[0]
	q.orgs = q.orgs[1:]
	items := q.waiting[org]
	if len(items) > 1 {
		q.waiting[org] = items[1:]
		q.orgs = append(q.orgs, org)
	} else {
		delete(q.waiting, org)
	}
	q.size--
	return items[0], true
}

// remove removes an item of an org, and reports whether it was in the queue.
func (q *turnQueue[T]) remove(org string, item T) bool {
	items := q.waiting[org]
	i := slices.Index(items, item)
	if i < 0 {
		return false
	}
	q.size--
	if len(items) > 1 {
		q.waiting[org] = slices.Delete(items, i, i+1)
		return true
	}
	delete(q.waiting, org)
	q.orgs = slices.DeleteFunc(q.orgs, func(o string) bool { return o == org })
	return true
}

// removeIf removes the items that meet a condition, and returns them.
func (q *turnQueue[T]) removeIf(condition func(T) bool) (removed []T) {
	for _, org := range slices.Clone(q.orgs) {
		for _, item := range slices.Clone(q.waiting[org]) {
			if condition(item) && q.remove(org, item) {
				removed = append(removed, item)
			}
		}
	}
	return removed
}
