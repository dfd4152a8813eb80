package policy

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
)

// A Derivation is the state of a commit under a contract, with the reasons.
type Derivation struct {
	State ledger.State
	// Standing is what the evidence gives now, as Standing returns it.
	Standing ledger.State
	// Requirements holds the status of each requirement, in the contract's order. If
	// conflicts.Settings.Blocks, the radar's requirement is last.
	Requirements []ledger.RequirementStatus
	// RolledBack holds the rollbacks that shut gates: no deployment to their environment has counted
	// since, and no exception is in force. They are in the order of the environments.
	RolledBack []ledger.CommitRollback
	// Expires is when the first evidence that counts now reaches its max_age. Until
	// then, the same facts result in the same state. It is zero for never.
	Expires ledger.Time
}

// Derive returns the state of a commit with facts f at the time now, with the reasons.
// The ledger computes every state with it, or with State.
//
// A fail or error that a requirement does not accept blocks the requirement until the
// same person reports an accepted status, or until an exception. It never expires: waiting
// does not turn a fail into a pass.
func (c Contract) Derive(f Facts, now ledger.Time) Derivation {
	v := c.evaluate(&f, now)
	d := Derivation{Requirements: make([]ledger.RequirementStatus, len(c.Requirements), len(c.Requirements)+1)}
	for i := range c.Requirements {
		d.Requirements[i] = v.status(i)
	}
	radar := v.radarStatus()
	if radar != nil {
		d.Requirements = append(d.Requirements, *radar)
	}
	d.State, d.Expires = v.state(radar)
	d.Standing, _ = v.standing(radar)
	d.RolledBack = v.rolledBack()
	return d
}

// State is like Derive, without the reasons, which is faster.
func (c Contract) State(f Facts, now ledger.Time) (state ledger.State, expires ledger.Time) {
	v := c.evaluate(&f, now)
	return v.state(v.radarStatus())
}

// Present returns State, Standing and Derivation.RolledBack at once.
func (c Contract) Present(f Facts, now ledger.Time) (state, standing ledger.State, shut []ledger.CommitRollback) {
	v := c.evaluate(&f, now)
	radar := v.radarStatus()
	state, _ = v.state(radar)
	standing, _ = v.standing(radar)
	return state, standing, v.rolledBack()
}

// Standing returns what the evidence gives now: the state that the commit would have if it had
// not been deployed, at most PROMOTABLE. Until expires, the same facts result in the same
// standing.
func (c Contract) Standing(f Facts, now ledger.Time) (standing ledger.State, expires ledger.Time) {
	v := c.evaluate(&f, now)
	return v.standing(v.radarStatus())
}

// An Outcome is what the writer stores of a Derivation.
type Outcome struct {
	State, Standing ledger.State
	// Expires is until when the same facts result in the same standing. It is zero for never.
	Expires ledger.Time
	// Failed reports whether a fail or error blocks a requirement that applies. A deployed
	// commit has none.
	Failed bool
}

// Outcome is like Derive, without the reasons, which is faster.
func (c Contract) Outcome(f Facts, now ledger.Time) (o Outcome) {
	v := c.evaluate(&f, now)
	radar := v.radarStatus()
	o.State, _ = v.state(radar)
	o.Standing, o.Expires = v.standing(radar)
	o.Failed = o.State != ledger.Deployed && slices.ContainsFunc(v.decisions, isFailed)
	return o
}

// isFailed reports whether a fail or error, for which there is no exception, blocks a
// requirement.
func isFailed(d decision) bool { return d.applies && !d.met && d.blocked && d.exception == nil }

// radarStatus returns the status of the radar's requirement, or nil if it has none.
func (v *evaluation) radarStatus() *ledger.RequirementStatus {
	if !v.c.Radar.Blocks() {
		return nil
	}
	var s ledger.RequirementStatus
	s, v.radarExpires = v.c.Radar.Status(v.f.Branch, v.f.Target, v.f.Overlaps, v.now)
	return &s
}

// state returns the state, and when the decisions change because of the time. The radar's
// status may be nil.
func (v *evaluation) state(radar *ledger.RequirementStatus) (state ledger.State, expires ledger.Time) {
	if v.f.Deployed {
		return ledger.Deployed, 0 // a deployment does not expire
	}
	return v.reached(radar)
}

// standing returns what the evidence gives now, at most PROMOTABLE.
func (v *evaluation) standing(radar *ledger.RequirementStatus) (standing ledger.State, expires ledger.Time) {
	reached, expires := v.reached(radar)
	return min(reached, ledger.Promotable), expires
}

// reached returns the highest state up to which every requirement that applies is met.
func (v *evaluation) reached(radar *ledger.RequirementStatus) (state ledger.State, expires ledger.Time) {
	expires = v.radarExpires
	for i := range v.rollbacks {
		if x := v.rollbacks[i].exception; x != nil {
			expires = earlier(expires, x.Until)
		}
	}

	var applying, unmet [ledger.Deployed + 1]int
	for i := range v.decisions {
		if d := &v.decisions[i]; d.applies {
			expires = earlier(expires, d.expires)
			applying[v.c.Requirements[i].State]++
			if !d.met {
				unmet[v.c.Requirements[i].State]++
			}
		}
	}
	if radar != nil && radar.Applies && !radar.Met {
		unmet[radar.State]++
	}

	if !v.f.Attested && !v.carrying.any {
		return ledger.Draft, expires
	}
	state = ledger.Validating
	for next := ledger.Attested; next <= ledger.Deployed; next++ {
		if unmet[next] > 0 || next == ledger.Deployed && applying[next] == 0 {
			break
		}
		state = next
	}
	return state, expires
}

// ExpiredAt returns the cause of a change at the given time: an attestation whose evidence
// counts until just before, or an exception that ends. It returns the zero Cause if neither
// does.
func (c Contract) ExpiredAt(f Facts, at ledger.Time) ledger.Cause {
	v := c.evaluate(&f, at)
	for i := range v.decisions {
		r, d := &c.Requirements[i], &v.decisions[i]
		if !d.applies {
			continue
		}
		if x := c.Exceptions.latest(f.Exceptions, r.Name); x != nil && x.Until == at {
			return ledger.Cause{Type: ledger.CauseException, ID: x.Attestation}
		}
		for n, verdict := range d.verdicts {
			if e := &f.Evidence[n]; verdict == expired && r.end(v.f, e) == at {
				return ledger.Cause{Type: ledger.CauseExpiry, ID: e.Attestation}
			}
		}
	}
	return ledger.Cause{}
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
