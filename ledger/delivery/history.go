package delivery

import (
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A Commit is one that a deployment ships.
type Commit struct {
	lineage.Shipped
	// Facts is what the ledger knows of it. It is nil if that is at most its object.
	Facts *policy.Facts
}

// A Base is what ran where a commit is deployed.
type Base struct {
	// Since is the commit since which everything is shipped, as lineage.Since returns it. It is empty if there is none,
	// or if the contract has no need of it.
	Since string
	// Follows reports whether what runs leads to the commit: if not, its files may differ anywhere.
	Follows bool
}

// A delivered is the history of a delivery. Its commits are numbered by their position.
type delivered struct {
	at      map[string]int // the number of each commit
	parents [][]int        // those of the delivery
	// order has the numbers, no commit before those that it leads to, and rank the place of each in it.
	order, rank []int

	// from says of the commits that the last walk found, those whose walk is its number, whether they are of the range.
	walk    int
	walks   []int
	isRange []bool
}

func newDelivered(commits []Commit) *delivered {
	n := len(commits)
	d := &delivered{at: make(map[string]int, n), parents: make([][]int, n), rank: make([]int, n),
		walks: make([]int, n), isRange: make([]bool, n)}
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
	for len(next) > 0 {
		i := next[len(next)-1]
		next = next[:len(next)-1]
		d.rank[i] = len(d.order)
		d.order = append(d.order, i)
		for _, at := range d.parents[i] {
			if children[at]--; children[at] == 0 {
				next = append(next, at)
			}
		}
	}
	return d
}

// between returns the numbers of the commits that lead to a head and not to another one. If that is not of the
// delivery, nothing of the delivery leads to it: it ran already, or leads to what did.
func (d *delivered) between(from string, head int) (list []int) {
	d.walk++
	ahead := d.find(head, true)
	if at, ok := d.at[from]; ok {
		ahead += d.find(at, false)
	}
	for rank := d.rank[head]; ahead > 0; rank++ {
		i := d.order[rank]
		if d.walks[i] != d.walk {
			continue
		}
		if d.isRange[i] {
			ahead--
			list = append(list, i)
		}
		for _, at := range d.parents[i] {
			ahead += d.find(at, d.isRange[i])
		}
	}
	return list
}

// find notes that a walk has come to a commit, from one of the range or not. It returns how many more commits of the
// range are found and not visited.
func (d *delivered) find(i int, isRange bool) (more int) {
	switch isNew := d.walks[i] != d.walk; {
	case isNew && isRange:
		more = 1
	case !isNew && !isRange && d.isRange[i]:
		more = -1
	case !isNew:
		return 0
	}
	d.walks[i], d.isRange[i] = d.walk, isRange
	return more
}
