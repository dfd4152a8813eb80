// Package delivery says which commits that a deployment ships are not covered by what the policy asks of each change.
package delivery

import (
	"container/heap"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A Commit is one that a deployment ships.
type Commit struct {
	lineage.Shipped
	// Facts is what the ledger knows of it. It is nil if that is at most its object.
	Facts *policy.Facts
}

// A Gap is a commit that is not covered.
type Gap struct {
	Commit string
	// Lacking has what each change must meet and this one does not. It is empty if the object of the commit is not
	// known: anybody may have changed anything.
	Lacking []ledger.RequirementStatus
}

// Reasons says why the commit is not covered.
func (g *Gap) Reasons() []string {
	if g.Lacking == nil {
		return []string{"its object is not known (to send it, run ledgerd commit register in a clone)"}
	}
	reasons := make([]string, len(g.Lacking))
	for i := range g.Lacking {
		reasons[i] = g.Lacking[i].Reason
	}
	return reasons
}

// Judge returns what the evidence gives the first commit, the one that is deployed, if each requirement about the tree
// applies that any commit of the delivery needs, and the commits that are not covered, in their order. follows reports
// whether what runs leads to the first commit: if not, its files may differ anywhere.
func Judge(c *policy.Contract, commits []Commit, follows bool, now ledger.Time) (standing ledger.State, gaps []Gap) {
	all := *commits[0].Facts
	if c.NeedsChanges() {
		addChanges(&all, commits, follows)
	}
	judge := c.Delivery(*commits[0].Facts, all, now)

	standing, lacking := judge.Head()
	switch own, _ := c.Standing(*commits[0].Facts, now); {
	case !commits[0].Known: // nor what leads to it
		gaps = append(gaps, Gap{Commit: commits[0].SHA})
	case standing < own: // by what applies to all alone
		gaps = append(gaps, Gap{commits[0].SHA, lacking})
	}
	return standing, append(gaps, below(judge, commits)...)
}

// addChanges sets which paths all commits of a delivery change. If that is not known of any of them, they may change
// any path.
func addChanges(all *policy.Facts, commits []Commit, follows bool) {
	paths := make(map[string]bool)
	for _, c := range commits {
		if !follows || c.Facts == nil || !c.Facts.HasChanges {
			all.HasChanges = false
			return
		}
		all.ManyChanges = all.ManyChanges || c.Facts.ManyChanges
		for _, path := range c.Facts.Changes {
			paths[path] = true
		}
	}
	all.Changes = all.Changes[:0:0]
	for path := range paths {
		all.Changes = append(all.Changes, path)
	}
	slices.Sort(all.Changes)
}

// below returns the commits below the first that are not covered. The first commit's own state says what it lacks.
func below(judge *policy.Delivery, commits []Commit) (gaps []Gap) {
	covering, isCovered := newDelivered(commits).coverings(judge)
	for i := range commits[1:] {
		c := &commits[i+1]
		switch {
		case !c.Known:
			gaps = append(gaps, Gap{Commit: c.SHA})
			continue
		case isCovered[i+1]:
			continue // other evidence does not change that
		}
		var facts policy.Facts
		if c.Facts != nil {
			facts = *c.Facts
		}
		if lacking := judge.Lacking(facts, covering[i+1]); lacking != nil {
			gaps = append(gaps, Gap{c.SHA, lacking})
		}
	}
	return gaps
}

// A delivered is the history of a delivery. Its commits are numbered by their position.
type delivered struct {
	commits []Commit
	at      map[string]int // the number of each commit
	parents [][]int        // those of the delivery
	// rank has no commit before its children.
	rank []int
}

func newDelivered(commits []Commit) *delivered {
	n := len(commits)
	d := &delivered{commits: commits, at: make(map[string]int, n), parents: make([][]int, n), rank: make([]int, n)}
	for i := range commits {
		d.at[commits[i].SHA] = i
	}
	children := make([]int, n)
	for i := range commits {
		for _, parent := range commits[i].Parents {
			if at, ok := d.at[parent]; ok {
				d.parents[i] = append(d.parents[i], at)
				children[at]++
			}
		}
	}

	var next []int
	for i := range commits {
		if children[i] == 0 {
			next = append(next, i)
		}
	}
	for rank := 0; len(next) > 0; rank++ {
		i := next[len(next)-1]
		next = next[:len(next)-1]
		d.rank[i] = rank
		for _, at := range d.parents[i] {
			if children[at]--; children[at] == 0 {
				next = append(next, at)
			}
		}
	}
	return d
}

// maxCoverings limits the evidence of other commits that is looked at for each commit.
const maxCoverings = 100

// coverings returns, by number, the evidence that covers a commit: the range of each has it. isCovered are the commits
// that need none.
func (d *delivered) coverings(judge *policy.Delivery) (covering [][]*policy.Covering, isCovered []bool) {
	covering, isCovered = make([][]*policy.Covering, len(d.commits)), make([]bool, len(d.commits))
	for head := range d.commits {
		if d.commits[head].Facts == nil {
			continue
		}
		var list []policy.Covering
		list, isCovered[head] = judge.Coverings(*d.commits[head].Facts)
		for n := range list {
			for _, i := range d.between(list[n].From, head) {
				if len(covering[i]) < maxCoverings {
					covering[i] = append(covering[i], &list[n])
				}
			}
		}
	}
	return covering, isCovered
}

// between returns the numbers of the commits that lead to a head and not to another one. If that is not of the
// delivery, nothing of the delivery leads to it: it ran already, or leads to what did.
func (d *delivered) between(from string, head int) (list []int) {
	w := &walk{rank: d.rank, isBefore: make(map[int]bool)}
	w.add(head, false)
	if at, ok := d.at[from]; ok {
		w.add(at, true)
	}
	for w.ahead > 0 {
		i := heap.Pop(w).(int)
		before := w.isBefore[i]
		if !before {
			w.ahead--
			list = append(list, i)
		}
		for _, at := range d.parents[i] {
			w.add(at, before)
		}
	}
	return list
}

// A walk visits commits, each after all that it leads to.
type walk struct {
	rank, queue []int
	isBefore    map[int]bool // of those found, whether they are not after the range
	ahead       int          // how many in the queue are of the range
}

// add notes that the walk has come to a commit.
func (w *walk) add(i int, before bool) {
	was, found := w.isBefore[i]
	switch {
	case !found:
		w.isBefore[i] = before
		heap.Push(w, i)
		if !before {
			w.ahead++
		}
	case before && !was:
		w.isBefore[i] = true
		w.ahead--
	}
}

func (w *walk) Len() int           { return len(w.queue) }
func (w *walk) Less(i, j int) bool { return w.rank[w.queue[i]] < w.rank[w.queue[j]] }
func (w *walk) Swap(i, j int)      { w.queue[i], w.queue[j] = w.queue[j], w.queue[i] }
func (w *walk) Push(i any)         { w.queue = append(w.queue, i.(int)) }

func (w *walk) Pop() any {
	last := len(w.queue) - 1
	i := w.queue[last]
	w.queue = w.queue[:last]
	return i
}
