package policy

import (
	"cmp"
	"slices"
	"sort"

	"github.com/ledgerd/ledgerd/ledger"
)

// A Counted lists what counts for a requirement that is met.
type Counted struct {
	// Name is the requirement's name or, if it has none, its predicate or type.
	Name  string
	State ledger.State
	// Attestations holds the IDs of the attestations that count, sorted: evidence, the
	// exception that stands in for a signer, and claims of merges by which evidence carries.
	Attestations []string
}

// A Decision is what a contract decides about a commit at a time, and what that rests on.
type Decision struct {
	State, Standing ledger.State
	// Expires is when the standing next changes because of the time, if it does: see Standing.
	Expires ledger.Time
	// Counted lists what counts for each requirement that is met.
	Counted []Counted
}

// Decide is like Derive, and lists what counts instead of the reasons.
func (c Contract) Decide(f Facts, now ledger.Time) (d Decision) {
	v := c.evaluate(&f, now)
	radar := v.radarStatus()
	d.State, _ = v.state(radar)
	d.Standing, d.Expires = v.standing(radar)

	for i := range v.decisions {
		requirement, r := &v.decisions[i], &c.Requirements[i]
		if !requirement.applies || !requirement.met {
			continue
		}

		counted := Counted{Name: cmp.Or(r.Name, r.Predicate, r.Type), State: r.State}
		for at, verdict := range requirement.verdicts {
			if verdict == counts {
				counted.Attestations = append(counted.Attestations, v.f.Evidence[at].Attestation)
			}
		}
		for _, carried := range v.carried(i) {
			if carried.Claim != "" && carried.Until != 0 { // only what counts has an end
				counted.Attestations = append(counted.Attestations, carried.Claim)
			}
		}
		if requirement.exception != nil {
			counted.Attestations = append(counted.Attestations, requirement.exception.Attestation)
		}

		slices.Sort(counted.Attestations)
		counted.Attestations = slices.Compact(counted.Attestations)
		d.Counted = append(d.Counted, counted)
	}
	return d
}

// maxTried limits how many times are tried at which evidence expires: more would take seconds.
const maxTried = 40

// Met says which requirements a commit meets by its evidence, without exceptions, and until when. It does not depend on
// the present time. If too many times would have to be tried, the answer may be earlier.
func (c Contract) Met(f Facts) Met {
	f.Exceptions = nil
	at := func(now ledger.Time) *evaluation {
		facts := f
		return c.evaluate(&facts, now)
	}
	first := at(0)
	ends := append(first.ends(), forever)
	tried := make(map[int]*evaluation)
	last := first // what is still met then, is so forever
	if n := len(ends) - 2; n >= 0 {
		last = at(ends[n])
		tried[n] = last
	}

	met := make(Met, len(c.Requirements))
	for i := range first.decisions {
		switch d := &first.decisions[i]; {
		case !d.applies, last.decisions[i].met:
			met[c.Requirements[i].key()] = forever
			continue
		case !d.met:
			continue
		}
		n := sort.Search(len(ends)-1, func(n int) bool { // nothing is met by waiting
			if tried[n] == nil && len(tried) < maxTried {
				tried[n] = at(ends[n])
			}
			return tried[n] == nil || !tried[n].decisions[i].met
		})
		met[c.Requirements[i].key()] = ends[n]
	}
	return met
}

// ends returns the times at which evidence that counts expires, in order.
func (v *evaluation) ends() (list []ledger.Time) {
	for i := range v.decisions {
		for at, verdict := range v.decisions[i].verdicts {
			if end := v.c.Requirements[i].end(v.f, &v.f.Evidence[at]); verdict == counts && end > 0 {
				list = append(list, end)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
