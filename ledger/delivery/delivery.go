// Package delivery says which commits that a deployment ships are not covered by what the policy asks of each change.
package delivery

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/scope"
)

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
// applies that any commit of the delivery needs, and the commits that are not covered, in their order.
func Judge(c *policy.Contract, commits []Commit, base Base, now ledger.Time) (standing ledger.State, gaps []Gap) {
	ch := changesOf(c, commits, base)
	judge := c.Delivery(*commits[0].Facts, ch.each[0], ch.all, now)

	standing, lacking := judge.Head()
	switch own, _ := c.Standing(*commits[0].Facts, now); {
	case !commits[0].Known: // nor what leads to it
		gaps = append(gaps, Gap{Commit: commits[0].SHA})
	case standing < own: // by what applies to all alone
		gaps = append(gaps, Gap{commits[0].SHA, lacking})
	}
	return standing, append(gaps, below(judge, commits, ch.each)...)
}

// below returns the commits below the first that are not covered. The first commit's own state says what it lacks.
func below(judge *policy.Delivery, commits []Commit, each []scope.Changes) (gaps []Gap) {
	covering := coverings(judge, commits, each)
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
		if lacking := judge.Lacking(facts, each[i+1], covering[i+1].list); lacking != nil {
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
func coverings(judge *policy.Delivery, commits []Commit, each []scope.Changes) []covering {
	list, found := make([]covering, len(commits)), make([][]policy.Covering, len(commits))
	isComplete := true
	for i := range commits {
		if facts := commits[i].Facts; facts != nil {
			found[i], list[i].isCovered = judge.Coverings(*facts, each[i])
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
