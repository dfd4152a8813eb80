// Package delivery says which commits that a deployment ships are not covered by what the policy asks of each change.
package delivery

import (
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

// Gaps returns the commits of a delivery that are not covered, in their order. The first commit is the one that is
// deployed: its own state says what it lacks, unless its object is not known.
func Gaps(judge *policy.Delivery, commits []Commit) (gaps []Gap) {
	d := &delivered{commits: commits, at: make(map[string]int, len(commits))}
	for i := range commits {
		d.at[commits[i].SHA] = i
	}
	covering := d.coverings(judge)
	if len(commits) > 0 && !commits[0].Known { // nor what leads to it
		gaps = append(gaps, Gap{Commit: commits[0].SHA})
	}

	for i := range commits[min(1, len(commits)):] {
		c := &commits[i+1]
		if !c.Known {
			gaps = append(gaps, Gap{Commit: c.SHA})
			continue
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

// A delivered is the history of a delivery.
type delivered struct {
	commits []Commit
	at      map[string]int // the position of each commit
}

// coverings returns, by position, the evidence that covers a commit: the range of each has it.
func (d *delivered) coverings(judge *policy.Delivery) [][]policy.Covering {
	covering := make([][]policy.Covering, len(d.commits))
	for head := range d.commits {
		if d.commits[head].Facts == nil {
			continue
		}
		for _, c := range judge.Coverings(*d.commits[head].Facts) {
			for _, i := range d.between(c.From, head) {
				covering[i] = append(covering[i], c)
			}
		}
	}
	return covering
}

// between returns the positions of the commits that lead to the one at a position and not to another one. If that is
// not of the delivery, nothing of the delivery leads to it: it runs already, or leads to what does.
func (d *delivered) between(from string, head int) (list []int) {
	seen := make(map[int]bool)
	if at, ok := d.at[from]; ok {
		d.visit(at, seen, func(int) {})
	}
	d.visit(head, seen, func(i int) { list = append(list, i) })
	return list
}

// visit calls note for each commit of the delivery that leads to the one at a position, and was not seen.
func (d *delivered) visit(from int, seen map[int]bool, note func(i int)) {
	stack := []int{from}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[i] {
			continue
		}
		seen[i] = true
		note(i)
		for _, parent := range d.commits[i].Parents {
			if at, ok := d.at[parent]; ok {
				stack = append(stack, at)
			}
		}
	}
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
