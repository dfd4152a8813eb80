package policy

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/glob"
)

// A Derivation is the state of a commit under a contract, with the reasons.
type Derivation struct {
	State ledger.State
	// Requirements holds the status of each requirement, in the contract's order. If
	// RadarSettings.Blocks, the radar's requirement is last.
	Requirements []ledger.RequirementStatus
	// Expires is when the first evidence that counts now reaches its max_age. Until
	// then, the same facts result in the same state. It is zero for never.
	Expires ledger.Time
}

// Derive returns the state of a commit with facts f at the time now, with the reasons.
// The ledger computes every state with it.
//
// A fail or error that a requirement does not accept blocks the requirement until the
// same signer reports an accepted status. It never expires: waiting does not turn a fail
// into a pass.
func (c Contract) Derive(f Facts, now ledger.Time) Derivation {
	f.Evidence = Latest(f.Evidence)
	d := Derivation{Requirements: make([]ledger.RequirementStatus, len(c.Requirements), len(c.Requirements)+1)}
	steps := c.matchingSteps()
	for i := range c.Requirements {
		status, expires := c.Requirements[i].evaluate(&f, now, steps)
		d.Requirements[i] = status
		if expires != 0 && (d.Expires == 0 || expires < d.Expires) {
			d.Expires = expires
		}
	}

	if c.Radar.Blocks() {
		status, expires := c.Radar.evaluate(&f, now)
		d.Requirements = append(d.Requirements, status)
		if expires != 0 && (d.Expires == 0 || expires < d.Expires) {
			d.Expires = expires
		}
	}

	d.State = stateOf(&f, d.Requirements)
	if f.Deployed {
		d.Expires = 0 // a deployment does not expire
	}
	return d
}

// RollsBack reports whether e, just recorded for a DEPLOYED commit, is a rollback: it
// matches the signers and the predicate of a DEPLOYED requirement that applies, and has
// a status that the requirement does not accept. Evidence without an outcome is not a rollback.
func (c Contract) RollsBack(f Facts, e Evidence) bool {
	if e.Status == ledger.Recorded {
		return false
	}
	steps := c.matchingSteps()
	for i := range c.Requirements {
		r := &c.Requirements[i]
		if r.State != ledger.Deployed {
			continue
		}
		if v := r.verdict(&f, &e, e.RecordedAt); v != blocks && v != notAccepted {
			continue
		}
		if excluded, _ := r.scope(&f, steps); excluded == "" {
			return true
		}
	}
	return false
}

// ExpiredAt returns the id of an attestation whose evidence counts until just before the
// given time and is expired from then on. It is empty if no evidence expires then.
func (c Contract) ExpiredAt(f Facts, at ledger.Time) string {
	steps := c.matchingSteps()
	f.Evidence = Latest(f.Evidence)
	for i := range c.Requirements {
		r := &c.Requirements[i]
		j := slices.IndexFunc(f.Evidence, func(e Evidence) bool {
			return r.end(&e) == at && r.verdict(&f, &e, at) == expired
		})
		if j < 0 {
			continue
		}
		if excluded, _ := r.scope(&f, steps); excluded == "" {
			return f.Evidence[j].Attestation
		}
	}
	return ""
}

// matchingSteps returns the limit of steps for matching one glob of the contract against
// the paths of one commit.
func (c Contract) matchingSteps() int {
	globs := 0
	for i := range c.Requirements {
		globs += len(c.Requirements[i].Paths)
	}
	return glob.MaxMatching / max(globs, 1)
}

// stateOf returns the highest state up to which every requirement that applies is met.
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

// Missing returns the requirements that block a commit in the given state: the unmet
// requirements of the lowest higher state that has any.
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

// Path lists the states that a commit enters when it moves between two states: each
// state on the way up, but only the final state on the way down.
func Path(from, to ledger.State) []ledger.State {
	if to < from {
		return []ledger.State{to}
	}
	var path []ledger.State
	for s := from + 1; s <= to; s++ {
		path = append(path, s)
	}
	return path
}
