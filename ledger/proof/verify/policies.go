package verify

import (
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// Policies follows the versions of a repo's contract by their events in the log. There is no
// event of version 1.
type Policies struct {
	version   int
	isSettled bool // some event is
	// shown are the versions that the ledger may have shown: that of the last settled event, and
	// those of the events after it.
	shown []ledger.PolicyEvent
}

// Add adds the next policy event of the log. It is settled if it was in the log before the
// ledger was asked for the contract. The error says that it does not follow the one before.
func (p *Policies) Add(e ledger.PolicyEvent, isSettled bool) error {
	before := max(p.version, 1)
	if isSettled {
		p.shown, p.isSettled = p.shown[:0], true
	}
	p.version, p.shown = e.Version, append(p.shown, e)
	if e.PreviousVersion != before || e.Version != before+1 {
		return fmt.Errorf("the event %s makes version %d follow %d, and the version before was %d", e.ID, e.Version,
			e.PreviousVersion, before)
	}
	return nil
}

// Contract checks that a version of a contract with a digest and rules is what its event says. The event is
// nil if the log has none, as of version 1, which comes with the repo.
func Contract(digest string, rules int, logged *ledger.PolicyEvent) error {
	if logged != nil && (logged.Digest != digest || logged.Rules != rules) {
		return fmt.Errorf("version %d of the contract has the digest %s and the rules %d, and the log has %q and %d",
			logged.Version, digest, rules, logged.Digest, logged.Rules)
	}
	return nil
}

// Digested checks that a contract has the digest that the ledger says.
func Digested(digest, says string) error {
	if digest != says {
		return fmt.Errorf("the contract has the digest %s, and the ledger says %s", digest, says)
	}
	return nil
}

// Check returns an error unless the contract that the ledger shows can have been in effect.
func (p *Policies) Check(shown policy.Policy) error {
	if err := Digested(shown.Contract.Digest(), shown.Digest); err != nil {
		return err
	}
	if shown.Version == 1 && !p.isSettled {
		return nil
	}
	if !slices.ContainsFunc(p.shown, func(e ledger.PolicyEvent) bool {
		return e.Version == shown.Version && shown.Contract.IsOf(e)
	}) {
		return fmt.Errorf("the ledger shows version %d, %s, with the rules %d, which is not the one in the log (version %d)",
			shown.Version, shown.Digest, shown.Rules, max(p.version, 1))
	}
	return nil
}
