package policy

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/glob"
)

// A Derivation is the state that a contract gives a commit, and why.
type Derivation struct {
	State ledger.State
	// Requirements tells of each requirement, in the contract's order, and last
	// of the radar where it blocks.
	Requirements []ledger.RequirementStatus
	// Expires is the first moment when evidence that counts now runs out by
	// max_age; until then the same facts give the same state. Zero: never.
	Expires ledger.Time
}

// Derive tells which state the contract gives a commit of which f is known,
// and why, at the time now. It is the only way a state comes about.
//
// A fail or error that a requirement does not accept keeps it unmet until its
// signer says better, at any age: waiting never turns a fail into a pass.
func (c Contract) Derive(f Facts, now ledger.Time) Derivation {
	d := Derivation{Requirements: make([]ledger.RequirementStatus, len(c.Requirements), len(c.Requirements)+1)}
	steps := c.matchingSteps()
	for i := range c.Requirements {
		status, expires := c.Requirements[i].judge(&f, now, steps)
		d.Requirements[i] = status
		if expires != 0 && (d.Expires == 0 || expires < d.Expires) {
			d.Expires = expires
		}
	}
	if c.Radar.Blocks() {
		status, expires := c.Radar.judge(&f, now)
		d.Requirements = append(d.Requirements, status)
		if expires != 0 && (d.Expires == 0 || expires < d.Expires) {
			d.Expires = expires
		}
	}
	d.State = stateOf(&f, d.Requirements)
	if f.Deployed {
		d.Expires = 0 // age does not end a deployment
	}
	return d
}

// RollsBack reports whether e, just recorded for a commit that is DEPLOYED,
// ends that: it is by a signer, and about the predicate, of a DEPLOYED
// requirement that applies, with a status that this does not accept.
func (c Contract) RollsBack(f Facts, e Evidence) bool {
	steps := c.matchingSteps()
	for i := range c.Requirements {
		r := &c.Requirements[i]
		if r.State != ledger.Deployed {
			continue
		}
		if v := r.weigh(&f, &e, e.RecordedAt); v != blocks && v != notAccepted {
			continue
		}
		if leftOut, _ := r.scope(&f, steps); leftOut == "" {
			return true
		}
	}
	return false
}

// RanOut returns the id of evidence that counts until just before the given
// moment and is too old from then on; empty if there is none.
func (c Contract) RanOut(f Facts, at ledger.Time) string {
	steps := c.matchingSteps()
	for i := range c.Requirements {
		r := &c.Requirements[i]
		j := slices.IndexFunc(f.Evidence, func(e Evidence) bool {
			return r.end(&e) == at && r.weigh(&f, &e, at) == expired
		})
		if j < 0 {
			continue
		}
		if leftOut, _ := r.scope(&f, steps); leftOut == "" {
			return f.Evidence[j].Attestation
		}
	}
	return ""
}

// matchingSteps returns how many steps each of the contract's globs may take
// to match the paths of one commit.
func (c Contract) matchingSteps() int {
	globs := 0
	for i := range c.Requirements {
		globs += len(c.Requirements[i].Paths)
	}
	return glob.MaxMatching / max(globs, 1)
}

// stateOf climbs from state to state as long as nothing that applies is unmet.
func stateOf(f *Facts, requirements []ledger.RequirementStatus) ledger.State {
	if f.Deployed {
		return ledger.Deployed
	}
	if !f.Attested {
		return ledger.Draft
	}
	state := ledger.Validating
	for next := ledger.Attested; next <= ledger.Deployed; next++ {
		applying, unmet := 0, 0
		for i := range requirements {
			if r := &requirements[i]; r.Applies && r.State == next {
				applying++
				if !r.Met {
					unmet++
				}
			}
		}
		if unmet > 0 || next == ledger.Deployed && applying == 0 {
			break
		}
		state = next
	}
	return state
}

// Missing returns those of the requirements that a commit in that state waits
// for: what is unmet of the lowest state above for which something is.
func Missing(state ledger.State, requirements []ledger.RequirementStatus) []ledger.RequirementStatus {
	for next := state + 1; next <= ledger.Deployed; next++ {
		var missing []ledger.RequirementStatus
		for _, r := range requirements {
			if r.State == next && r.Applies && !r.Met {
				missing = append(missing, r)
			}
		}
		if missing != nil {
			return missing
		}
	}
	return nil
}

// Path lists the states that a commit enters on its way: up one by one, down
// straight to where it belongs.
func Path(from, to ledger.State) []ledger.State {
	if to < from {
		return []ledger.State{to}
	}
	var way []ledger.State
	for s := from + 1; s <= to; s++ {
		way = append(way, s)
	}
	return way
}
