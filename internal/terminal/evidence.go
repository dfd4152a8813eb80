package terminal

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
)

// Evidence names what an attestation is about: its predicate and, if it has one, its slot.
func Evidence(a ledger.AttestationRecord) string {
	if a.Slot == "" {
		return a.Predicate
	}
	return a.Predicate + " for " + ledger.ShortSlot(a.Slot)
}

// Cause describes the cause of a transition, such as "policy 2".
func Cause(c ledger.Cause) string {
	switch c.Type {
	case ledger.CauseExpiry:
		return "expiry of " + c.ID
	case ledger.CauseIdentity:
		return fmt.Sprintf("identity %s (one person with another signer, or distrusted)", c.ID)
	case ledger.CauseUpgrade:
		return fmt.Sprintf("upgrade (statements are read by rules %s)", c.ID)
	}
	return fmt.Sprintf("%s %s", c.Type, c.ID)
}

// Requirement returns the mark of a requirement, and how many signers it has of how many it
// needs.
func Requirement(r ledger.RequirementStatus) (mark, have string) {
	mark = "✗"
	switch {
	case !r.Applies:
		mark = "-"
	case r.Met:
		mark = "✓"
	}
	if r.Need == 0 {
		return mark, "-" // the radar's requirement counts no signers
	}
	return mark, fmt.Sprintf("%d of %d", r.Have, r.Need)
}

// State returns the state of a commit or an artifact as text, with its standing if that has lapsed.
func State(state, standing ledger.State) string {
	if ledger.Lapsed(state, standing) {
		return fmt.Sprintf("%s (standing %s)", state, standing)
	}
	return state.String()
}

// Link returns the mark of a link of an artifact, and whether it counts and its commit has
// reached a state.
func Link(l ledger.ArtifactLink, required ledger.State) (mark, reason string) {
	switch {
	case !l.Counts:
		return "-", "does not count: " + l.Reason
	case len(l.RolledBack) > 0:
		return "✗", Printable(l.RolledBack[0].String())
	case l.Delivery != nil && l.Delivery.Uncovered > 0:
		return "✗", l.Delivery.Summary()
	case ledger.Reached(required, l.State, l.Standing):
		mark, reason = "✓", "counts"
	default:
		mark, reason = "✗", fmt.Sprintf("has not reached %s", required)
	}
	if l.Warning != "" {
		reason += fmt.Sprintf(" (%s)", Printable(string(l.Warning)))
	}
	return mark, reason
}
