package policy

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy/internal/assign"
)

// DeliversTo reports whether a deployment to an environment counts only if all commits that it ships are covered.
func (c *Contract) DeliversTo(environment string) bool {
	e := Evidence{Predicate: ledger.EnvironmentPredicate(environment), PredicateType: ledger.ResultType}
	return slices.ContainsFunc(c.Requirements, func(r Requirement) bool { return r.Delivery && r.isAbout(&e) })
}

// Delivers reports whether e is a deployment that counts only if all commits that it ships are covered.
func (c *Contract) Delivers(e *Evidence) bool {
	return slices.ContainsFunc(c.Requirements, func(r Requirement) bool {
		return r.Delivery && r.isAbout(e) && slices.Contains(r.Accept, e.Status)
	})
}

// HasDelivery reports whether any deployment counts only if all commits that it ships are covered. If so, Derive needs
// Facts.Spans also of reviews that carry by tree.
func (c *Contract) HasDelivery() bool {
	return slices.ContainsFunc(c.Requirements, func(r Requirement) bool { return r.Delivery })
}

// A Delivery decides which commits of a delivery are covered. They are judged by the requirements that apply to what
// all of them change.
type Delivery struct {
	c      *Contract
	now    ledger.Time
	scopes []scope
	head   *evaluation
	// byHead is what counts for the head, which speaks for the tree of all: who reviews must be others, by distinct_from.
	byHead []*Covering
}

// A Covering is evidence that counts for a requirement and covers commits before the one that it was recorded for.
type Covering struct {
	Evidence Evidence
	// requirement is its index.
	requirement int
	// From is the commit from which on it covers. It is not covered itself.
	From string
}

// Delivery returns what decides about the commits of a delivery. The facts are those of the commit that is deployed,
// but with the paths that all of them change.
func (c *Contract) Delivery(f Facts, now ledger.Time) *Delivery {
	d := &Delivery{c: c, now: now, scopes: c.scopes(&f), head: c.evaluate(&f, now)}
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

// asks reports whether each commit must meet a requirement.
func (d *Delivery) asks(i int) bool {
	r := &d.c.Requirements[i]
	return r.Covers == CoversChange && r.State < ledger.Deployed
}

// Coverings returns the evidence of a commit of the delivery that covers others, too.
func (d *Delivery) Coverings(f Facts) (list []Covering) {
	v := d.c.evaluateIn(&f, d.now, d, nil)
	for i := range d.c.Requirements {
		if !d.asks(i) {
			continue
		}
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
	return list
}

// coversFrom returns the commits from which on the evidence at a position covers the changes; none if it covers the
// commit alone. A review of a commit that was rebased covers the rebased ones. If it carries by tree, it covers what
// leads from its base to this commit, unless its signer wrote any of that.
func (v *evaluation) coversFrom(i, at int) (from []string) {
	r, e := &v.c.Requirements[i], &v.f.Evidence[at]
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

// Lacking returns the requirements that a commit of the delivery does not meet, with the reasons. It is covered if
// there are none. coverings have the evidence of all commits whose range has this one.
func (d *Delivery) Lacking(f Facts, coverings []*Covering) (list []ledger.RequirementStatus) {
	v := d.c.evaluateIn(&f, d.now, d, coverings)
	for i := range d.c.Requirements {
		if decision := &v.decisions[i]; d.asks(i) && decision.applies && !decision.met && !v.isCleanMerge(i) {
			list = append(list, v.status(i))
		}
	}
	return list
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

// cover adds the evidence that covers a commit of a delivery to its own.
func (v *evaluation) cover(d *Delivery, coverings []*Covering) {
	v.delivery, v.plain = d, len(v.f.Evidence)
	v.f.Evidence = slices.Clip(v.f.Evidence)
	for _, list := range [][]*Covering{d.byHead, coverings} {
		for _, c := range list {
			v.f.Evidence = append(v.f.Evidence, c.Evidence)
			var counts assign.Set
			counts.Add(c.requirement)
			v.covers = append(v.covers, counts)
		}
	}
}

// isOfOther reports whether the evidence at a position is that of another commit, which covers this one.
func (v *evaluation) isOfOther(at int) bool { return v.delivery != nil && at >= v.plain }

// isJudged reports whether the evidence at a position plays a part for a requirement that it is about. For those about
// the tree, only that of the head does.
func (v *evaluation) isJudged(i, at int) bool {
	if v.isOfOther(at) {
		return v.covers[at-v.plain].Contains(i)
	}
	return v.delivery == nil || v.delivery.asks(i)
}

// isCleared reports whether a review that covers the commit was recorded after all that blocks a requirement.
func (v *evaluation) isCleared(i int, about []int) bool {
	last, cleared := "", ""
	for _, at := range about {
		switch e := &v.f.Evidence[at]; {
		case v.isOfOther(at):
			cleared = max(cleared, e.Attestation)
		case v.decisions[i].verdicts[at] == blocks:
			last = max(last, e.Attestation)
		}
	}
	return cleared > last
}

// takeOver takes what an exception does for the head, and whether it lacks people, for a requirement about the tree.
// Its own state says what the head lacks.
func (v *evaluation) takeOver(i int) {
	if v.delivery.asks(i) {
		return
	}
	d, head := &v.decisions[i], &v.delivery.head.decisions[i]
	d.filled, d.exception = head.filled, head.exception
	if !head.met {
		d.filled = v.c.Requirements[i].Threshold
	}
}
