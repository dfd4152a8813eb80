package check

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/passkey"
)

// evidence checks the attestation of an event: that its envelope is signed by the key of the
// record, and that record, event and signed statement say the same.
func (c *checker) evidence(org string, e *event) {
	a := e.evidence
	if a == nil {
		c.problemf("attestation", org, e.row(), "there is no attestation for the event")
		return
	}
	defer func() { a.body, a.payload, a.assertion = nil, nil, nil }()
	c.compareEvent(org, e)
	c.compareAssertion(org, a)
	if a.isPruned() && len(a.body) == sha256.Size {
		c.count(func(r *Report) *int64 { return &r.PrunedEnvelopes }, 1)
		c.compareDigest(org, e, a.body)
		return
	}
	whole, ok := a.envelope()
	if ok {
		sum := sha256.Sum256(whole)
		c.compareDigest(org, e, sum[:])
	}
	switch {
	case !ok:
		c.problemf("envelope", org, a.row(), "there is no envelope, or its parts do not fit")
		return
	case a.keyring == nil:
		c.problemf("signature", org, a.row(), "it cannot be verified: there is no usable identity %s", a.identity)
		return
	}

	signed, err := attestation.VerifyRecorded(whole, a.commit, a.keyring, a.at)
	if signed == nil {
		c.problemf("signature", org, a.row(), "%v", err)
		return
	}
	for _, field := range []struct{ name, row, signed string }{
		{"signer", a.dn, signed.Signer.DN.String()},
		{"digest of the key", hex.EncodeToString(a.key), hex.EncodeToString(signed.Signer.Key[:])},
		{"digest of the payload", hex.EncodeToString(a.payloadDigest), hex.EncodeToString(signed.PayloadDigest[:])},
	} {
		if field.row != field.signed && !(len(a.key) == 0 && field.name == "digest of the key") {
			c.problemf("attestation", org, a.row(), "the row has the %s %s, and the envelope %s", field.name, field.row,
				field.signed)
		}
	}
	c.compareOutcome(org, a, signed, err)
	a.says, a.certified, a.isRead = says{signed.Exception, signed.Merge, signed.Rollback}, signed.Signer.Emails, true
	c.compareVerdicts(org, a, signed.Payload)
	c.confirmed(org, a, signed.Payload)
}

// compareAssertion compares the assertion of an attestation with its digest in the row.
func (c *checker) compareAssertion(org string, a *evidence) {
	sum := sha256.Sum256(a.assertion)
	switch {
	case a.assertionDigest == nil && a.assertion == nil:
	case a.assertionDigest == nil:
		c.problemf("assertion", org, a.row(), "there is an assertion of a passkey, and the row has no digest of one")
	case a.assertion == nil:
		c.problemf("assertion", org, a.row(), "the row has the digest of an assertion of a passkey, which is missing")
	case !bytes.Equal(sum[:], a.assertionDigest):
		c.problemf("assertion", org, a.row(), "it has the digest sha256:%x, and the row sha256:%x", sum, a.assertionDigest)
	}
}

// confirmed checks that the assertion of an attestation, if it has one, is about what was signed.
func (c *checker) confirmed(org string, a *evidence, payload []byte) {
	if a.assertion == nil {
		return
	}
	assertion, err := passkey.ParseAssertion(a.assertion)
	if err == nil {
		err = assertion.Verify(payload)
	}
	if err != nil {
		c.problemf("assertion", org, a.row(), "%v", err)
	}
}

// compareVerdicts evaluates expressions again. Why one cannot be evaluated may be said in other words by
// another release.
func (c *checker) compareVerdicts(org string, a *evidence, payload []byte) {
	if len(a.expressions) == 0 {
		return
	}
	for i, want := range c.store.Verdicts(payload, a.expressions) {
		if got := a.verdicts[i]; got.True != want.True || (got.Error == "") != (want.Error == "") {
			c.problemf("verdict", org, a.row(), "the expression %s is stored as %t, and is %t", a.expressions[i], got.True,
				want.True)
		}
	}
}

// compareOutcome compares the row of an attestation with what was signed. unread is why the
// statement cannot be read, if so.
func (c *checker) compareOutcome(org string, a *evidence, signed *attestation.Attestation, unread error) {
	want, artifacts := signed.Outcome, signed.Artifacts
	switch {
	case unread != nil && !a.again:
		c.problemf("attestation", org, a.row(), "the statement cannot be read: %v", unread)
		return
	case unread == nil && signed.Commit != a.commit && !a.again:
		c.problemf("attestation", org, a.row(), "the row is about commit %s, and the statement about %s", a.commit,
			signed.Commit)
	case a.again:
		want, artifacts = attestation.Remap(attestation.Recorded{
			Envelope: signed.Envelope, PredicateType: a.typ, Commit: a.commit, RecordedAt: a.at,
			Outcome: attestation.Outcome{Predicate: a.predicate, Slot: a.slot, Result: a.result},
		})
	}
	if a.isUnmapped = a.mappingVersion != attestation.MappingVersion; a.isUnmapped {
		if c.vouching.isMapped {
			c.problemf("attestation", org, a.row(), "the row says that it was mapped by the rules %d, and all are by %d",
				a.mappingVersion, attestation.MappingVersion)
		}
		return
	}

	got := fmt.Sprint(a.predicate, " ", a.slot, " ", a.result)
	if wanted := fmt.Sprint(want.Predicate, " ", want.Slot, " ", want.Result); got != wanted {
		c.problemf("attestation", org, a.row(), "the row says %q, and the statement %q", got, wanted)
	}
	a.link(want, artifacts)
	a.saidAt = want.FinishedAt
	if a.isLate = a.finishedAt > want.FinishedAt; a.finishedAt < want.FinishedAt {
		c.problemf("attestation", org, a.row(), "the row says that it finished at %s, and the statement at %s", a.finishedAt,
			want.FinishedAt)
	}
	if a.reason != signed.Reason() && unread == nil {
		c.problemf("attestation", org, a.row(), "the row has the reason %q, and the statement %q", a.reason, signed.Reason())
	}
	if signed.PredicateType != a.typ && unread == nil {
		c.problemf("attestation", org, a.row(), "the row has the type %s, and the statement %s", a.typ, signed.PredicateType)
	}
}

// compareDigest compares the digest of an envelope with that in the event of its attestation,
// which older events do not have.
func (c *checker) compareDigest(org string, e *event, sum []byte) {
	if e.said == nil || e.said.EnvelopeDigest == "" {
		return
	}
	if digest := "sha256:" + hex.EncodeToString(sum); digest != e.said.EnvelopeDigest {
		c.problemf("envelope", org, e.evidence.row(), "it has the digest %s, and its %s says %s", digest, e.row(),
			e.said.EnvelopeDigest)
	}
}

// digestText returns a digest as events have it; "" without one.
func digestText(digest []byte) string {
	if digest == nil {
		return ""
	}
	return "sha256:" + hex.EncodeToString(digest)
}

// compareAge compares since when an attestation ages with the body of its event.
func (c *checker) compareAge(org string, e *event) {
	a, want := e.evidence, e.said.Timestamp
	if want == a.at {
		want = 0
	}
	switch {
	case a.agedFrom == want:
	case c.vouching.isCorrected:
		c.uncheckedf("%s: since when attestations age: an earlier release has corrected that after its clock was ahead", org)
	default:
		c.problemf("attestation", org, a.row(), "the row says that it ages from %s, and its %s from %s", a.agedFrom, e.row(),
			want)
	}
}

// compareEvent compares an attestation with the body of its event.
func (c *checker) compareEvent(org string, e *event) {
	a, said := e.evidence, e.said
	if said == nil {
		return
	}
	fields := []struct{ name, row, event string }{
		{"ID", a.public, said.Attestation}, {"commit", a.commit, said.Commit}, {"signer", a.dn, said.Identity},
		{"digest of the payload", "sha256:" + hex.EncodeToString(a.payloadDigest), said.PayloadDigest},
		{"digest of the assertion", digestText(a.assertionDigest), said.AssertionDigest},
	}
	if said.Key != "" { // older events do not have it
		fields = append(fields, struct{ name, row, event string }{"digest of the key", hex.EncodeToString(a.key), said.Key})
	}

	c.compareAge(org, e)
	if !a.again {
		fields = append(fields, []struct{ name, row, event string }{
			{"predicate", a.predicate, said.Predicate}, {"result", fmt.Sprint(a.result), fmt.Sprint(said.Result)},
		}...)
	}
	for _, field := range fields {
		if field.row != field.event {
			c.problemf("attestation", org, a.row(), "the row has the %s %q, and its %s %q", field.name, field.row, e.row(),
				field.event)
		}
	}
}
