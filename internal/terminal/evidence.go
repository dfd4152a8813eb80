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
