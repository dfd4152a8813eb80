// Package delivery says which commits that a deployment ships are not covered by what the policy asks of each change.
package delivery

import (
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

// IsUnknown reports whether the object of the commit is not known.
func (g *Gap) IsUnknown() bool { return g.Lacking == nil }

// Reasons says why the commit is not covered.
func (g *Gap) Reasons() []string {
	if g.IsUnknown() {
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
	covering := coverings(judge, commits)
	for i := range commits[1:] {
		c := &commits[i+1]
		switch {
		case !c.Known:
			gaps = append(gaps, Gap{Commit: c.SHA})
			continue
		case covering[i+1].isCovered:
			continue
		}
		var facts policy.Facts
		if c.Facts != nil {
			facts = *c.Facts
		}
		if lacking := judge.Lacking(facts, covering[i+1].list); lacking != nil {
			gaps = append(gaps, Gap{c.SHA, lacking})
		}
	}
	return gaps
}

// A covering is what covers a commit.
type covering struct {
	// isCovered reports whether the commit needs nothing but what it has alone.
	isCovered bool
	// list has the evidence of other commits whose range has this one.
	list []*policy.Covering
}

// maxCoverings limits the evidence of other commits that is looked at for each commit.
const maxCoverings = 100

// add adds evidence of another commit. Of an individual, only the latest counts for a requirement.
func (c *covering) add(e *policy.Covering) {
	at := slices.IndexFunc(c.list, e.IsOfSame)
	switch {
	case at < 0 && len(c.list) < maxCoverings:
		c.list = append(c.list, e)
	case at >= 0 && e.Evidence.Attestation > c.list[at].Evidence.Attestation:
		c.list[at] = e
	}
}

// coverings returns what covers each commit.
func coverings(judge *policy.Delivery, commits []Commit) []covering {
	list, found := make([]covering, len(commits)), make([][]policy.Covering, len(commits))
	isComplete := true
	for i := range commits {
		if facts := commits[i].Facts; facts != nil {
			found[i], list[i].isCovered = judge.Coverings(*facts)
		}
		isComplete = isComplete && list[i].isCovered
	}
	if isComplete {
		return list
	}

	d := newDelivered(commits)
	for head := range found {
		ranges := make(map[string][]int)
		for n := range found[head] {
			e := &found[head][n]
			covered, ok := ranges[e.From]
			if !ok {
				covered = d.between(e.From, head)
				ranges[e.From] = covered
			}
			for _, i := range covered {
				if !list[i].isCovered {
					list[i].add(e)
				}
			}
		}
	}
	return list
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
