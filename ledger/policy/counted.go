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

// Counted is like Derive, and lists what counts for each requirement that is met.
func (c Contract) Counted(f Facts, now ledger.Time) (state ledger.State, expires ledger.Time, list []Counted) {
	v := c.evaluate(&f, now)
	state, expires = v.state(v.radarStatus())

	for i := range v.decisions {
		d, r := &v.decisions[i], &c.Requirements[i]
		if !d.applies || !d.met {
			continue
		}

		counted := Counted{Name: cmp.Or(r.Name, r.Predicate, r.Type), State: r.State}
		for at, verdict := range d.verdicts {
			if verdict == counts {
				counted.Attestations = append(counted.Attestations, v.f.Evidence[at].Attestation)
			}
		}
		for _, carried := range v.carried(i) {
			if carried.Claim != "" && carried.Until != 0 { // only what counts has an end
				counted.Attestations = append(counted.Attestations, carried.Claim)
			}
		}
		if d.exception != nil {
			counted.Attestations = append(counted.Attestations, d.exception.Attestation)
		}

		slices.Sort(counted.Attestations)
		counted.Attestations = slices.Compact(counted.Attestations)
		list = append(list, counted)
	}
	return state, expires, list
}
