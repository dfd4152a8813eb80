package policy

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy/scope"
)

// Delivery returns what decides about the commits of a delivery. The facts are those of the commit that is deployed,
// and own is what it changes itself. all is what all commits change.
func (c *Contract) Delivery(f Facts, own, all scope.Changes, now ledger.Time) *Delivery {
	d := &Delivery{c: c, now: now, all: c.scopesOf(f.Targets, all), targets: f.Targets}
	d.head = c.evaluateIn(&f, now, d.scopesOf(own), nil, nil)
	if !slices.ContainsFunc(c.Requirements, func(r Requirement) bool { return len(r.DistinctFrom) > 0 }) {
		return d
	}
	for i := range c.Requirements {
		for at, verdict := range d.head.decisions[i].verdicts {
			if verdict == counts && !d.asks(i) {
				e := d.head.f.Evidence[at]
				e.Source = 0 // it is the head's, whatever it is about
				d.byHead = append(d.byHead, &Covering{Evidence: e, requirement: i})
			}
		}
	}
	return d
}

// Coverings returns the evidence of a commit of the delivery that covers others, too. isCovered reports whether the
// commit itself is covered by what it has alone.
func (d *Delivery) Coverings(f Facts, ch scope.Changes) (list []Covering, isCovered bool) {
	own := d.scopesOf(ch)
	v := d.c.evaluateIn(&f, d.now, d.all, d, nil) // a review counts for others if it does not apply to this one, too
	isCovered = true
	for i := range d.c.Requirements {
		if !d.asks(i) {
			continue
		}
		isCovered = isCovered && (own != nil && own[i].Excluded != "" || !v.isUncovered(i))
		v.carrying.findWays(&d.c.Requirements[i])

		for at, verdict := range v.decisions[i].verdicts {
			if verdict != counts {
				continue
			}
			for _, from := range v.coversFrom(i, at) {
				e := v.f.Evidence[at]
				e.Source = 0
				list = append(list, Covering{e, i, from})
			}
		}
	}
	return list, isCovered
}

// coversFrom returns the commits from which on the evidence at a position covers the changes; none if it covers the
// commit alone. A review of a commit that was rebased covers the rebased ones. If it carries by tree, it covers what
// leads from its base to this commit, unless its signer wrote any of that.
func (v *evaluation) coversFrom(i, at int) (from []string) {
	r, e := &v.c.Requirements[i], &v.f.Evidence[at]
	if !e.IsReview() {
		return nil
	}
	span, known := v.f.Spans[e.Base]
	if e.Source == 0 {
		if known {
			from = append(from, e.Base)
		}
		return from
	}

	v.authors.weigh()
	for _, by := range v.authors.ways(r, at) {
		since := ""
		switch {
		case by.claim == nil && known:
			since, by.wrote = e.Base, append(by.wrote, span)
		case by.claim != nil && by.claim.Side != nil && by.claim.Kind == "rebase":
			since = by.claim.Side.Commit
		}
		if since != "" && (r.ExcludeAuthor == AuthorCounts || v.authors.isByOther(r, by, at)) {
			from = append(from, since)
		}
	}
	return from
}

// Lacking returns the requirements that a commit of the delivery does not meet, with the reasons. If the list is empty,
// the commit is covered. coverings is the evidence of other commits whose ranges contain this one.
func (d *Delivery) Lacking(f Facts, ch scope.Changes, coverings []*Covering) (list []ledger.RequirementStatus) {
	v := d.c.evaluateIn(&f, d.now, d.scopesOf(ch), d, coverings)
	for i := range d.c.Requirements {
		if d.asks(i) && v.isUncovered(i) {
			list = append(list, v.status(i))
		}
	}
	return list
}

// isUncovered reports whether the commit does not meet a requirement that each commit must meet.
func (v *evaluation) isUncovered(i int) bool {
	return v.decisions[i].applies && !v.decisions[i].met && !v.isCleanMerge(i)
}

// isCleanMerge reports whether the commit is a merge that changes nothing by itself, as somebody claims whom the
// requirement believes: what is merged is asked for itself.
func (v *evaluation) isCleanMerge(i int) bool {
	r := &v.c.Requirements[i]
	isClean := func(m MergeClaim) bool {
		return m.Side != nil && m.Side.Refused == "" && matchesAny(r.CarrySigners, m.Signer) &&
			(m.Kind == "merge" || m.Kind == "update")
	}
	return r.Carry&CarryMerge != 0 && !v.decisions[i].blocked &&
		slices.ContainsFunc(v.f.Sources, func(s Source) bool { return slices.ContainsFunc(s.Claims, isClean) })
}

// Head returns what the evidence gives the commit that is deployed, at most PROMOTABLE, and what it lacks for that.
func (d *Delivery) Head() (standing ledger.State, lacking []ledger.RequirementStatus) {
	standing, _ = d.head.standing(d.head.radarStatus())
	for i := range d.head.decisions {
		if decision := &d.head.decisions[i]; d.c.Requirements[i].State <= ledger.Promotable && decision.applies &&
			!decision.met {
			lacking = append(lacking, d.head.status(i))
		}
	}
	return standing, lacking
}
