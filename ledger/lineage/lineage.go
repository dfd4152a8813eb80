// Package lineage answers questions about the history of commits from what their objects say. What is not known, or
// lies beyond the bounds, is answered as if it was not so.
package lineage

import (
	"container/heap"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// A Node is the place of a commit in the history, as its object says.
type Node struct {
	Parents []string
	// At is the committer's time, which may be wrong. It is 0 if the ledger does not accept it.
	At ledger.Time
}

// A Graph returns the node of a commit. It reports false if the commit's object is not known.
type Graph func(sha string) (n Node, known bool, err error)

// MaxCommits limits the commits that one question visits.
const MaxCommits = 10_000

const (
	// trusted is the number of commits that are visited before their times are relied on.
	trusted = 1000
	// slop is how much older than a commit its descendants may be, by their times.
	slop = 7 * 24 * time.Hour
)

// IsAncestor reports whether commit a is b, or an ancestor of b. sure is false if it is not known to be one, and may
// become so by an object that is not known, or lies beyond the bounds.
func IsAncestor(g Graph, a, b string) (is, sure bool, err error) {
	if a == b {
		return true, true, nil
	}
	target, _, err := g(a)
	if err != nil {
		return false, false, err
	}

	w := newWalk(g)
	if err := w.mark(b, fromHead); err != nil {
		return false, false, err
	}
	for w.queue.Len() > 0 && len(w.commits) < MaxCommits {
		c := w.pop()
		if len(w.commits) > trusted && c.At.Add(slop) < target.At {
			return false, w.knowsAll(), nil // and so are all that are left
		}
		for _, parent := range c.Parents {
			if parent == a {
				return true, true, nil
			}
			if err := w.mark(parent, fromHead); err != nil {
				return false, false, err
			}
		}
	}
	return false, w.queue.Len() == 0 && w.knowsAll(), nil
}

// IsFirstParent reports whether commit a is among the first n commits that follow b by first parents.
func IsFirstParent(g Graph, a, b string, n int) (bool, error) {
	for range n {
		node, _, err := g(b)
		if err != nil || len(node.Parents) == 0 {
			return false, err
		}
		if b = node.Parents[0]; b == a {
			return true, nil
		}
	}
	return false, nil
}

// MaxSpan limits the commits between two others: those that a review can be about.
const MaxSpan = ledger.MaxReviewed

// Between returns the commits that lead to a commit, the head, and not to the base, which is an ancestor of the head.
// The head is the first of them. It reports false if the base is no ancestor, if the object of any of the commits is
// not known, or if they are more than MaxSpan.
func Between(g Graph, base, head string) (list []string, known bool, err error) {
	w := newWalk(g)
	complete, err := w.divide(head, base)
	if err != nil || !complete {
		return nil, false, err
	}
	list, known = w.ofHead()
	return list, known && len(list) <= MaxSpan && w.commits[base].from&fromHead != 0, nil
}

// A Shipped is a commit of a delivery.
type Shipped struct {
	SHA     string
	Parents []string
	// Known reports whether its object is known. If not, it has no Parents, and may have any.
	Known bool
}

// MaxShipped limits the commits of a delivery.
const MaxShipped = 10_000

// Delivery returns what a deployment of a commit, the head, ships where others ran before it: the head itself, which is
// the first, and all that leads to it and not to any of those that it contains. If it contains none of them, that is
// all that leads to the head. It reports false if they are more than MaxShipped, or if finding them takes a walk to
// more than twice as many.
func Delivery(g Graph, head string, ran map[string]bool) (list []Shipped, complete bool, err error) {
	w := newWalk(g)
	if err := w.mark(head, fromHead); err != nil {
		return nil, false, err
	}
	for !w.isDone() {
		if len(w.commits) > 2*MaxShipped {
			return nil, false, nil
		}
		c := w.pop()
		for _, parent := range c.Parents {
			from := c.from
			if ran[c.sha] || ran[parent] {
				from |= fromBase
			}
			if err := w.mark(parent, from); err != nil {
				return nil, false, err
			}
		}
	}

	for _, sha := range w.order {
		if c := w.commits[sha]; c.from == fromHead {
			list = append(list, Shipped{sha, c.Parents, c.known})
		}
	}
	return list, len(list) <= MaxShipped, nil
}

// Since returns the commit that ran and that contains all others that ran and lead to a delivery: what is delivered is
// all that leads to the head and not to that commit. It is empty if no commit does.
func Since(g Graph, delivered []Shipped, ran map[string]bool) (string, error) {
	ends := make(map[string]bool)
	for _, c := range delivered {
		for _, parent := range c.Parents {
			if ran[parent] {
				ends[parent] = true
			}
		}
	}

	newest, at := "", ledger.Time(0)
	for _, end := range slices.Sorted(maps.Keys(ends)) {
		n, _, err := g(end)
		if err != nil {
			return "", err
		}
		if newest == "" || n.At > at {
			newest, at = end, n.At
		}
	}
	for other := range ends {
		if is, _, err := IsAncestor(g, other, newest); err != nil || !is {
			return "", err
		}
	}
	return newest, nil
}

// Ahead returns the commits that lead to a commit, the head, and are not known to lead to any of the others. The head
// is the first of them. Those whose objects are not known are among them, and so are the others' ancestors beyond the
// bounds.
func Ahead(g Graph, head string, others ...string) ([]string, error) {
	w := newWalk(g)
	if _, err := w.divide(head, others...); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(w.order, func(sha string) bool { return w.commits[sha].from != fromHead }), nil
}

// maxBases limits the commits among which a merge base is looked for.
const maxBases = 4

// MergeBase returns the merge base of a commit, the head, and another one, and the commits since then that lead to the
// head, which is the first of them. It returns an empty base if there are several merge bases or none, if the other
// commit contains the head, or if the object of any commit since then is not known.
func MergeBase(g Graph, head, other string) (base string, list []string, err error) {
	w := newWalk(g)
	complete, err := w.divide(head, other)
	if err != nil || !complete {
		return "", nil, err
	}
	list, known := w.ofHead()
	if !known {
		return "", nil, nil
	}

	var bases []string
	for _, sha := range list {
		for _, parent := range w.commits[sha].Parents {
			if w.commits[parent].from != fromHead && !slices.Contains(bases, parent) {
				bases = append(bases, parent)
			}
		}
	}
	if len(bases) > maxBases {
		return "", nil, nil
	}
	if base, err = highest(g, bases); err != nil || base == "" {
		return "", nil, err
	}
	return base, list, nil
}

// highest returns the commit of a list that descends from all others, or "" if none does.
func highest(g Graph, commits []string) (string, error) {
	for _, candidate := range commits {
		isHighest := true
		for _, other := range commits {
			is, _, err := IsAncestor(g, other, candidate)
			if err != nil {
				return "", err
			}
			isHighest = isHighest && is
		}
		if isHighest {
			return candidate, nil
		}
	}
	return "", nil
}

// An origin says from where a walk has come to a commit.
type origin uint8

const (
	fromHead origin = 1 << iota
	fromBase
)

// A visited is a commit that a walk has come to.
type visited struct {
	Node
	sha    string
	known  bool
	from   origin
	queued bool
}

// A walk visits the ancestors of commits, those with the latest time first, and those that are not known last.
type walk struct {
	graph   Graph
	commits map[string]*visited
	order   []string // the keys of commits, in the order in which they were found
	queue   queue
	ahead   int // how many in the queue come from the head alone
	// oldest is the earliest time of those that were taken from the queue and then came from the head alone.
	oldest ledger.Time
}

func newWalk(g Graph) *walk {
	return &walk{graph: g, commits: make(map[string]*visited), oldest: math.MaxInt64}
}

// divide visits commits until it is known which lead to the head and not to any of the bases. It reports false if they
// are too many.
func (w *walk) divide(head string, bases ...string) (complete bool, err error) {
	for _, base := range bases {
		if err := w.mark(base, fromBase); err != nil {
			return false, err
		}
	}
	if err := w.mark(head, fromHead); err != nil {
		return false, err
	}
	for !w.isDone() {
		if len(w.commits) > MaxCommits {
			return false, nil
		}
		c := w.pop()
		for _, parent := range c.Parents {
			if err := w.mark(parent, c.from); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// isDone reports whether it is known which commits lead to the head alone, if no commit is older than its parents. Of
// commits of the same second, the walk may have come to some from the head before it comes to them from a base.
func (w *walk) isDone() bool {
	return w.ahead == 0 && (w.queue.Len() == 0 || w.queue[0].At < w.oldest)
}

// ofHead returns the commits that lead to the head alone, the head first. It reports false if the object of any is not
// known.
func (w *walk) ofHead() (list []string, known bool) {
	for _, sha := range w.order {
		c := w.commits[sha]
		if c.from != fromHead {
			continue
		}
		if !c.known {
			return nil, false
		}
		list = append(list, sha)
	}
	return list, true
}

// knowsAll reports whether the objects of all commits that the walk has come to are known.
func (w *walk) knowsAll() bool {
	for _, c := range w.commits {
		if !c.known {
			return false
		}
	}
	return true
}

// mark notes from where the walk has come to a commit, and queues it if that is new.
func (w *walk) mark(sha string, from origin) error {
	c := w.commits[sha]
	if c == nil {
		c = &visited{sha: sha}
		var err error
		if c.Node, c.known, err = w.graph(sha); err != nil {
			return err
		}
		w.commits[sha] = c
		w.order = append(w.order, sha)
	}
	if c.from|from == c.from {
		return nil
	}

	if c.queued && c.from == fromHead {
		w.ahead--
	}
	c.from |= from
	if c.from == fromHead {
		w.ahead++
	}
	if !c.queued {
		c.queued = true
		heap.Push(&w.queue, c)
	}
	return nil
}

// pop takes the next commit from the queue.
func (w *walk) pop() *visited {
	c := heap.Pop(&w.queue).(*visited)
	c.queued = false
	if c.from == fromHead {
		w.ahead--
		if c.known {
			w.oldest = min(w.oldest, c.At)
		}
	}
	return c
}

// A queue is a heap of commits, the latest first.
type queue []*visited

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].At > q[j].At }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(c any)        { *q = append(*q, c.(*visited)) }

func (q *queue) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	*q = (*q)[:last]
	return c
}
