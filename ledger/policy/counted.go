package policy

import (
	"cmp"
	"slices"

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
