package verify

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

func attested(t *testing.T, id string) func(*Session) (verify.Report, error) {
	return func(s *Session) (verify.Report, error) { return s.Attestation(t.Context(), "api", id) }
}

// What the ledger has pruned is not checked, and the rest is.
func TestPruned(t *testing.T) {
	h := newHostAgo(t, 48*time.Hour)
	old := h.attest(commitID(1), "lint:go", ledger.Pass)
	h.prune(ledger.RetentionChange{Envelopes: new(ledger.MinRetention)})
	h.attest(commitID(1), "review:code", ledger.Pass)
	s, p := newSite(t, h), newPerson(t)
	r := p.verify(s, attested(t, old.ID))
	wantVerified(t, r)
	want(t, r, verify.CheckSignature, verify.NotChecked, "the ledger has pruned the envelope")
	want(t, r, verify.CheckRecord, verify.OK, "it is what the event says")
	r = rederiving(t).verify(s, repo(t))
	wantVerified(t, r)
	want(t, r, verify.CheckSignature, verify.NotChecked, "2 events: the ledger has pruned the envelope")
	want(t, r, verify.CheckSignature, verify.OK, "1 event")
	want(t, r, checkDerivation, verify.NotChecked, "but the ledger has pruned evidence")
	want(t, r, checkStates, verify.OK, "")

	h.prune(ledger.RetentionChange{Events: new(ledger.MinRetention)})
	s = newSite(t, h)
	r = p.verify(s, event(t, old.Event))
	wantVerified(t, r)
	want(t, r, verify.CheckBody, verify.NotChecked, "it was pruned")
	want(t, r, verify.CheckInclusion, verify.OK, "")
	r = p.verify(s, attested(t, old.ID))
	wantVerified(t, r)
	want(t, r, verify.CheckRecord, verify.NotChecked, "the ledger has pruned the event")
	for _, subject := range []func(*Session) (verify.Report, error){commit(t, 1), repo(t)} {
		r = p.verify(s, subject)
		wantVerified(t, r)
		want(t, r, checkEvents, verify.NotChecked, "the ledger has pruned what ")
		want(t, r, checkAttestations, verify.OK, "")
	}
	wantVerified(t, rederiving(t).verify(s, repo(t)))
}

// Pruned events excuse neither events that are lost, nor a state that other events show.
func TestPrunedExcusesNothingElse(t *testing.T) {
	h := newHostAgo(t, 48*time.Hour)
	h.prune(ledger.RetentionChange{Events: new(ledger.MinRetention)})
	h.attest(commitID(2), "lint:go", ledger.Pass)
	later := h.attest(commitID(2), "test:go", ledger.Pass)
	s, p := newSite(t, h), newPerson(t)
	r := p.verify(s, repo(t))
	wantVerified(t, r)
	want(t, r, checkStates, verify.NotChecked, "1 of 2 commits have theirs by events that the ledger has pruned")

	for name, change := range map[string]struct{ statement, check string }{
		"the state of a commit": {"UPDATE commits SET state = 4 WHERE sha = '" + commitID(2) + "'", checkStates},
		"a lost event": {
			"UPDATE events SET event_id = 'evt_01M8RGR080WQVTVHT76PFDWXTN' WHERE event_id = '" + later.Event + "'", checkEvents,
		},
	} {
		t.Run(name, func(t *testing.T) {
			other := h.copied()
			other.change(change.statement)
			r := p.verify(newSite(t, other), repo(t))
			want(t, r, change.check, verify.Failed, "")
		})
	}
}
