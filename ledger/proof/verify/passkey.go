package verify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/passkey"
)

// Passkeys has what the log of an org says of passkeys. The zero value is empty. A copy shares the passkeys of
// the original.
type Passkeys struct {
	events map[string][]enrolment     // by the ID of the passkey, in the order of the log
	ids    map[string]map[string]bool // of the passkeys that an event says have a key, by the key
	// Fault is why the events are not those in the log; nil if they are.
	Fault error
	// Gap says why the log may have events that were not read; empty if it has no others. Then it is not
	// known whose passkeys are.
	Gap string
}

// An enrolment is an event about a passkey: that it was enrolled, or removed.
type enrolment struct {
	index int64
	ledger.IdentityEvent
}

// Add adds the next event of an identity in the log, and ignores those that are not about a passkey.
// index is the number of the event among all of the org.
func (p *Passkeys) Add(index int64, e ledger.IdentityEvent) {
	if e.Kind != ledger.KindPasskey {
		return
	}
	if p.events == nil {
		p.events, p.ids = make(map[string][]enrolment), make(map[string]map[string]bool)
	}
	if p.ids[e.Key] == nil {
		p.ids[e.Key] = make(map[string]bool)
	}
	p.ids[e.Key][e.IdentityID] = true
	p.events[e.IdentityID] = append(p.events[e.IdentityID], enrolment{index, e})
}

// latest returns the last event about a passkey before an event of the log; nil if it has none.
func (p *Passkeys) latest(id string, before int64) *enrolment {
	for _, e := range slices.Backward(p.events[id]) {
		if e.index < before {
			return &e
		}
	}
	return nil
}

// check returns an error unless a passkey is that of a signer before an event of the log: it was enrolled,
// and not removed.
func (p *Passkeys) check(a passkey.Assertion, signer identity.DN, before int64) error {
	err := fmt.Errorf("the log has no enrolment of the passkey %.16s before the attestation", a.Key())
	for _, id := range slices.Sorted(maps.Keys(p.ids[a.Key()])) {
		e := p.latest(id, before)
		if e == nil || e.Key != a.Key() {
			continue
		}
		owner, parseErr := identity.ParseDN(e.DN)
		switch {
		case parseErr != nil || owner.String() != signer.String():
			err = fmt.Errorf("the passkey %.16s is enrolled for %s, and the attestation is by %s", a.Key(), e.DN, signer)
		case e.RPID != a.RPID:
			err = fmt.Errorf("the passkey %.16s is enrolled for the domain %s, and the assertion is for %s", a.Key(), e.RPID,
				a.RPID)
		case e.Action == ledger.IdentityRevoked:
			err = fmt.Errorf("the passkey %.16s was removed before the attestation, by the event %s", a.Key(), e.ID)
		default:
			return nil
		}
	}
	return err
}
