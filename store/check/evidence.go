package check

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store/check/report"
)

// evidence checks the attestation of an event: that its envelope is signed by the key of the
// record, and that record, event and signed statement say the same.
func (c *checker) evidence(org string, e *event) {
	a := e.evidence
	if a == nil {
		c.Problemf(verify.CheckAttestations, org, e.row(), "the ledger does not have its attestation")
		return
	}
	defer func() { a.body, a.payload, a.assertion = nil, nil, nil }()
	a.isUnmapped = a.mappingVersion != attestation.MappingVersion
	said, _ := e.said.(*ledger.AttestationEvent)
	v := verify.Attestation{Said: said, Record: c.record(org, a, said), Assertion: a.assertion, IsOriginal: !a.again,
		IsRemapped: a.again, IsUnmapped: a.isUnmapped}
	v.Passkeys.Gap = "it is only compared with its digest"
	whole, ok := a.envelope()
	switch {
	case a.isPruned() && len(a.body) == sha256.Size:
		c.Count(func(r *report.Report) *int64 { return &r.PrunedEnvelopes }, 1)
		v.EnvelopeDigest = a.body
	case !ok:
		c.Problemf(verify.CheckDigests, org, a.row(), "there is no envelope, or its parts do not fit")
	case a.Keyring == nil:
		c.Problemf(verify.CheckSignature, org, a.row(), "it cannot be verified: there is no usable identity %s", a.identity)
		v.EnvelopeDigest = hashOf(whole)
	default:
		v.Envelope = whole
	}

	if a.RevokedAt != 0 && a.RevokedAt < a.at {
		c.Problemf(verify.CheckSignature, org, a.row(), "identity %s was revoked", a.dn)
	}
	checks, signed := v.Check(verify.Recorded(a.Keyring))
	c.Failed(org, a.row(), checks...)
	if signed == nil {
		return
	}
	c.compareOutcome(org, a, signed)
	a.says = says{signed.Exception, signed.Merge, signed.Rollback, signed.Changes}
	a.certified, a.isRead = signed.Signer.Emails, true
	c.compareVerdicts(org, a, signed.Payload)
}

// record returns the row of an attestation as the API shows it.
func (c *checker) record(org string, a *evidence, said *ledger.AttestationEvent) *ledger.AttestationRecord {
	r := &ledger.AttestationRecord{
		ID: a.public, Org: org, Repo: a.repo, Commit: a.commit, Predicate: a.predicate, PredicateType: a.typ, Slot: a.slot,
		Identity: a.dn, Result: a.result, RecordedAt: cmp.Or(a.agedFrom, a.at), Reason: a.reason, Base: a.base,
		PayloadDigest: digestText(a.payloadDigest), Event: a.event, AssertionDigest: digestText(a.assertionDigest),
		Verification: &ledger.Verification{Key: hex.EncodeToString(a.key)},
	}
	if dn, err := identity.ParseDN(a.dn); err == nil {
		r.Signer = dn.CN
	}
	if said == nil {
		return r
	}

	r.Org, r.Repo = said.Org, said.Repo // the event has the names of its time, which are those of its row
	if r.RecordedAt != said.Timestamp && c.mapping.isCorrected {
		r.RecordedAt = said.Timestamp
		c.Uncheckedf("%s: since when attestations age: an earlier release has corrected that after its clock was ahead", org)
	}
	return r
}

// compareVerdicts evaluates expressions again. Why one cannot be evaluated may be said in other words by
// another release.
func (c *checker) compareVerdicts(org string, a *evidence, payload []byte) {
	if len(a.expressions) == 0 {
		return
	}
	for i, want := range c.store.Verdicts(payload, a.expressions) {
		if got := a.verdicts[i]; got.True != want.True || (got.Error == "") != (want.Error == "") {
			c.Problemf("verdict", org, a.row(), "the expression %s is stored as %t, and is %t", a.expressions[i], got.True,
				want.True)
		}
	}
}

// compareOutcome compares what only the row of an attestation has with what was signed.
func (c *checker) compareOutcome(org string, a *evidence, signed *attestation.Attestation) {
	want, artifacts := signed.Outcome, signed.Artifacts
	if a.again {
		m := attestation.RemapAgain(attestation.Recorded{
			Envelope: signed.Envelope, PredicateType: a.typ, Commit: a.commit, RecordedAt: a.at,
			Outcome: attestation.Outcome{Predicate: a.predicate, Slot: a.slot, Result: a.result},
		})
		want, artifacts = m.Outcome, m.Artifacts
	}
	if a.isUnmapped {
		if c.mapping.isDone {
			c.Problemf(verify.CheckRecord, org, a.row(), "the row says that it was mapped by the rules %d, and all are by %d",
				a.mappingVersion, attestation.MappingVersion)
		}
		return
	}

	a.link(want, artifacts)
	a.saidAt = want.FinishedAt
	if a.isLate = a.finishedAt > want.FinishedAt; a.finishedAt < want.FinishedAt {
		c.Problemf(verify.CheckRecord, org, a.row(), "the row says that it finished at %s, and the statement at %s",
			a.finishedAt, want.FinishedAt)
	}
	if why := signed.Reason(); a.reason == "" && why != "" {
		c.Problemf(verify.CheckRecord, org, a.row(), "the row has no reason, and the statement %q", why)
	}
}
