package store

import (
	"maps"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/internal/envelope"
)

// A newAttestation is what is recorded of an attestation.
type newAttestation struct {
	*attestation.Attestation
	evidence *policy.Evidence
	// The rows of its predicate, predicate type, signer and key.
	predicateID, typeID, signerID, keyID int64
	event                                string // its id
	envelope                             envelope.Packed
	// assertion is that of the passkey which has confirmed the statement, and assertionDigest its
	// SHA-256; nil without a passkey.
	assertion, assertionDigest any
	verdicts                   map[string]policy.Verdict // of expressions
}

// insertAttestation adds the rows of an attestation of a commit to the buffers.
func (t *tx) insertAttestation(s *subject, n newAttestation) error {
	id, err := t.kernel.NextRow("attestations")
	if err != nil {
		return err
	}
	t.caches.evidence.Put(id, *n.evidence)
	t.gathered.cached = true

	rows := t.batch.rows
	rows.attestations.Add(id, s.newest, n.evidence.Attestation, s.repoID, s.id, n.predicateID, n.typeID,
		int64(attestation.MappingVersion), n.Slot, n.signerID, n.keyID,
		string(n.evidence.Status), n.Result.DurationMS, int64(t.kernel.Stamp), n.PayloadDigest[:], n.Signer.Identity,
		strings.Join(n.evidence.Emails, "\n"), n.evidence.WhilePromotable, n.event, int64(t.agedFrom()),
		int64(n.evidence.FinishedAt), n.assertionDigest, n.evidence.Reason)
	s.newest = id
	rows.envelopes.Add(id, n.envelope.Body, n.envelope.Payload, n.envelope.PayloadAt, n.assertion)
	for _, x := range slices.Sorted(maps.Keys(n.verdicts)) {
		if err := t.addVerdict(id, x, n.verdicts[x]); err != nil {
			return err
		}
	}
	for _, digest := range n.Artifacts.Digests {
		rows.artifacts.Add(s.d.repo.OrgID, DigestKey(digest), s.id, n.Signer.Identity, n.signerID,
			policy.Builds(n.Predicate, n.evidence.Status), id)
	}
	if s.isLatest(n.evidence) {
		key := latestKey{s.id, n.predicateID, n.Slot, n.signerID}
		t.setLatest(key, id)
		t.inherit(s, key, id, n.evidence)
	}
	t.count(repoAttestations, s.repoID, 1)
	t.count(predicateAttestations, n.predicateID, 1)
	return nil
}

// agedFrom returns the time from which the age of an attestation of this write counts, or
// 0 if that is its recorded_at.
func (t *tx) agedFrom() ledger.Time {
	if t.kernel.Stamp == t.Now {
		return 0
	}
	return t.Now
}
