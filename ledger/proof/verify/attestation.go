package verify

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/passkey"
)

// The names of the checks of an attestation.
const (
	CheckSignature = "signature"
	CheckDigests   = "digests"
	CheckRecord    = "record"
	CheckPasskey   = "passkey"
)

// An Attestation is an attestation as the ledger gives it.
type Attestation struct {
	// Envelope is the envelope, bundle or commit object.
	Envelope []byte
	// Event is the body of the event of its recording.
	Event []byte
	// Record is what the ledger shows; nil if only files are read.
	Record *ledger.AttestationRecord
	// Assertion is the text of the assertion of the passkey that has confirmed the statement; nil if the
	// ledger does not show it.
	Assertion []byte
	// Passkeys are those in the log, and Index is the number of the event among all of the org. Both are
	// only needed if IsConfirmed.
	Passkeys Passkeys
	Index    int64
}

// recording is the body of the event of an attestation. Events of earlier versions have neither
// key nor envelope digest.
type recording struct {
	ledger.AttestationEvent `json:",embed"`
	Key                     string `json:"key"`
	EnvelopeDigest          string `json:"envelope_digest"`
}

// Verify checks that a trusted key has signed the attestation, that the event of its recording
// has its digests, that the ledger shows what was signed, and that a passkey has confirmed it if the
// event says so. It returns what was signed, or nil if the signature is not valid.
func (a Attestation) Verify(keys Keys) (checks []Check, signed *attestation.Attestation) {
	var e recording
	if err := ledger.DecodeOpen(a.Event, &e); err != nil {
		return []Check{Failure(CheckDigests, "parse the event: %v", err)}, nil
	}
	if e.Type != ledger.EventAttestation {
		return []Check{Failure(CheckDigests, "the event %s has the type %s, not attestation", e.ID, e.Type)}, nil
	}

	signed, err := a.open(keys, e)
	if err != nil {
		checks = append(checks, Failure(CheckSignature, "%v", err))
	} else {
		checks = append(checks, a.signedBy(keys, e, signed))
	}
	checks = append(checks, a.digests(e))
	record := Skipped(CheckRecord, "the signature is not valid")
	if signed != nil {
		record = a.record(e, signed)
	}
	return append(append(checks, record), a.confirmed(e, signed)...), signed
}

// PrunedEvent is why an attestation is not compared with the event of its recording.
const PrunedEvent = "the ledger has pruned the event"

// VerifyPruned checks what is left if the ledger has pruned the envelope, the event of the recording
// or both. What was pruned is nil. Without the envelope, nothing shows what was signed, and the record
// must be what the event says. Without the event, nothing shows that the log has this attestation, and
// the record must be what was signed.
func (a Attestation) VerifyPruned(keys Keys) []Check {
	switch {
	case a.Event != nil:
		return a.verifyRecord()
	case a.Envelope != nil:
		return a.verifyEnvelope(keys)
	}
	checks := []Check{Skipped(CheckSignature, PrunedEvent), Skipped(CheckDigests, PrunedEvent),
		Skipped(CheckRecord, PrunedEvent)}
	if a.IsConfirmed() {
		checks = append(checks, Skipped(CheckPasskey, PrunedEvent))
	}
	return checks
}

// verifyEnvelope verifies the envelope against the record, instead of the event.
func (a Attestation) verifyEnvelope(keys Keys) []Check {
	r := a.Record
	var e recording
	e.AttestationEvent = ledger.AttestationEvent{
		ID: r.Event, Org: r.Org, Repo: r.Repo, Commit: r.Commit, Predicate: r.Predicate, Identity: r.Identity,
		Result: r.Result, Timestamp: r.RecordedAt, Attestation: r.ID, PayloadDigest: r.PayloadDigest,
		AssertionDigest: r.AssertionDigest,
	}
	signed, err := a.open(keys, e)
	if err != nil {
		return append([]Check{Failure(CheckSignature, "%v", err), Skipped(CheckDigests, PrunedEvent),
			Skipped(CheckRecord, "the signature is not valid")}, a.confirmed(e, nil)...)
	}

	digests, record := a.digests(e), a.isSigned(e, signed)
	if digests.Status == OK {
		digests = Skipped(CheckDigests, PrunedEvent)
	}
	if record.Status == OK {
		record = Skipped(CheckRecord, PrunedEvent)
	}
	return append([]Check{a.signedBy(keys, e, signed), digests, record}, a.unconfirmed(e, signed, PrunedEvent)...)
}

// verifyRecord verifies the record against the event, without the envelope.
func (a Attestation) verifyRecord() []Check {
	const why = "the ledger has pruned the envelope"
	var e recording
	if err := ledger.DecodeOpen(a.Event, &e); err != nil {
		return []Check{Failure(CheckRecord, "parse the event: %v", err)}
	}
	if e.Type != ledger.EventAttestation {
		return []Check{Failure(CheckRecord, "the event %s has the type %s, not attestation", e.ID, e.Type)}
	}
	dn, err := identity.ParseDN(e.Identity)
	if err != nil {
		return []Check{Failure(CheckRecord, "parse the event: %v", err)}
	}

	r := a.Record
	claims := append(recordedClaims(r, e), claim{"commit", r.Commit, e.Commit}, claim{"signer", r.Signer, dn.CN})
	if !strings.Contains(e.Predicate, "://") { // as in record
		claims = append(claims, claim{"predicate", r.Predicate, e.Predicate}, claim{"result", r.Result, e.Result})
	}
	return append([]Check{Skipped(CheckSignature, why), Skipped(CheckDigests, why),
		checkClaims(claims, "it is what the event says")}, a.unconfirmed(e, nil, why)...)
}

func (a Attestation) signedBy(keys Keys, e recording, signed *attestation.Attestation) Check {
	return Passed(CheckSignature, "by %s, with the key %x of %s, %s", e.Identity, signed.Signer.Key[:8],
		signed.Signer.Identity, keys.source())
}

// AttestationID returns the ID of the attestation in the body of the event of its recording.
func AttestationID(event []byte) (string, error) {
	var e recording
	if err := ledger.DecodeOpen(event, &e); err != nil {
		return "", fmt.Errorf("parse the event: %w", err)
	}
	if e.Attestation == "" {
		return "", fmt.Errorf("the event %s names no attestation", e.ID)
	}
	return e.Attestation, nil
}

// open verifies the signature with the keys that were trusted when it was recorded, and returns
// what was signed.
func (a Attestation) open(keys Keys, e recording) (*attestation.Attestation, error) {
	ring, err := keys.keyring(e.Identity, e.Timestamp)
	if err != nil {
		return nil, err
	}
	var signed *attestation.Attestation
	if attestation.IsCommitObject(a.Envelope) {
		commit, err := gitobject.Parse(e.Commit, a.Envelope)
		if err != nil {
			return nil, err
		}
		signed, err = attestation.OfCommit(commit, ring, e.Timestamp)
		if err != nil {
			return nil, err
		}
	} else if signed, err = attestation.Verify(a.Envelope, ring, e.Timestamp); err != nil {
		if keys.pinned && attestation.CertificateOf(a.Envelope) != nil {
			return nil, errors.New("pinned keys verify no keyless signatures: a trusted root cannot be pinned")
		}
		return nil, err
	}

	signed.AsRecorded(e.Result.Status)
	if dn := signed.Signer.DN.String(); dn != e.Identity {
		return nil, fmt.Errorf("it is by %s, and the event says %s", dn, e.Identity)
	}
	if key := hex.EncodeToString(signed.Signer.Key[:]); e.Key != "" && e.Key != key {
		return nil, fmt.Errorf("it is by the key %s, and the event says %s", key, e.Key)
	}
	if keys.used != nil {
		keys.used[signed.Signer.Identity] = true
	}
	return signed, nil
}

// digests checks that the event has the digests of what is there.
func (a Attestation) digests(e recording) Check {
	payload, err := attestation.Payload(a.Envelope)
	if err != nil {
		return Failure(CheckDigests, "%v", err)
	}
	if got := digest(payload); got != e.PayloadDigest {
		return Failure(CheckDigests, "the payload has the digest %s, and the event says %s", got, e.PayloadDigest)
	}
	if e.EnvelopeDigest == "" {
		return Passed(CheckDigests, "the event has that of the payload, %s, and none of the envelope", e.PayloadDigest)
	}
	if got := digest(a.Envelope); got != e.EnvelopeDigest {
		return Failure(CheckDigests, "the envelope has the digest %s, and the event says %s", got, e.EnvelopeDigest)
	}
	return Passed(CheckDigests, "the event has those of the payload, %s, and of the envelope", e.PayloadDigest)
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// A claim is a field that the ledger shows, with the value that it must have.
type claim struct {
	what        string
	shown, want any
}

// record checks that the event and the record say what was signed.
func (a Attestation) record(e recording, signed *attestation.Attestation) Check {
	if err := signed.CheckRepo(e.Org, e.Repo); err != nil {
		return Failure(CheckRecord, "%v", err)
	}
	return a.isSigned(e, signed)
}

// isSigned is record without the check of the repo, which may have had another name.
func (a Attestation) isSigned(e recording, signed *attestation.Attestation) Check {
	claims := []claim{{"the event's commit", e.Commit, signed.Commit}}
	if r := a.Record; r != nil {
		claims = append(claims, claim{"commit", r.Commit, signed.Commit}, claim{"predicate", r.Predicate, signed.Predicate},
			claim{"predicate type", r.PredicateType, signed.PredicateType}, claim{"slot", r.Slot, signed.Slot},
			claim{"result", r.Result, signed.Result}, claim{"signer", r.Signer, signed.Signer.DN.CN})
		if r.Reason != "" { // earlier releases recorded none
			claims = append(claims, claim{"reason", r.Reason, signed.Reason()})
		}
		claims = append(claims, recordedClaims(r, e)...)
	}
	if !strings.Contains(e.Predicate, "://") { // earlier versions had the type as the predicate of most statements
		claims = append(claims, claim{"the event's predicate", e.Predicate, signed.Predicate},
			claim{"the event's result", e.Result, signed.Result})
	}

	return checkClaims(claims, "%s %s on %s in %s/%s at %s", signed.Predicate, signed.Result.Status, signed.Commit, e.Org,
		e.Repo, e.Timestamp)
}

// recordedClaims returns what the ledger shows of how an attestation was recorded.
func recordedClaims(r *ledger.AttestationRecord, e recording) []claim {
	return []claim{
		{"identity", r.Identity, e.Identity}, {"payload digest", r.PayloadDigest, e.PayloadDigest},
		{"repo", strings.Join([]string{r.Org, r.Repo}, "/"), e.Org + "/" + e.Repo}, {"ID", r.ID, e.Attestation},
		{"event", r.Event, e.ID}, {"time", r.RecordedAt, e.Timestamp},
		{"assertion digest", r.AssertionDigest, e.AssertionDigest},
	}
}

// checkClaims checks that each claim has its value. The format says what was found if they have.
func checkClaims(claims []claim, format string, args ...any) Check {
	for _, c := range claims {
		if c.shown != c.want {
			return Failure(CheckRecord, "%s: the ledger says %v, and it is %v", c.what, c.shown, c.want)
		}
	}
	return Passed(CheckRecord, format, args...)
}

// IsConfirmed reports whether the event of the recording, or the record, says that a passkey has
// confirmed the attestation. Assertion and Passkeys are then needed.
func (a Attestation) IsConfirmed() bool {
	var e recording
	_ = ledger.DecodeOpen(a.Event, &e) // another check reports that it cannot be parsed
	return e.AssertionDigest != "" || a.Record != nil && a.Record.AssertionDigest != ""
}

// confirmed checks that a passkey of the signer has confirmed what was signed, and then adds the assertion
// to it. There are no checks without an assertion if the event does not say that a passkey has.
func (a Attestation) confirmed(e recording, signed *attestation.Attestation) []Check {
	switch {
	case e.AssertionDigest == "" && a.Assertion == nil:
		return nil
	case e.AssertionDigest == "":
		return []Check{Failure(CheckPasskey, "there is an assertion, and the event has no digest of one")}
	}
	assertion, err := a.assertion(e)
	if err == nil && signed != nil {
		err = assertion.Verify(signed.Payload)
	}
	if err != nil {
		return []Check{Failure(CheckPasskey, "%v", err)}
	}
	if signed == nil {
		return []Check{Skipped(CheckPasskey, "the signature is not valid")}
	}

	err = a.Passkeys.check(assertion, signed.Signer.DN, a.Index)
	switch {
	case a.Passkeys.Fault != nil:
		return []Check{Failure(CheckPasskey, "%v", a.Passkeys.Fault)}
	case a.Passkeys.Gap != "":
		return []Check{Skipped(CheckPasskey, "whose passkey has confirmed it: %s", a.Passkeys.Gap)}
	case err != nil:
		return []Check{Failure(CheckPasskey, "%v", err)}
	}
	signed.Assertion = a.Assertion
	return []Check{Passed(CheckPasskey, "the passkey %.16s of %s, for %s, has confirmed it", assertion.Key(), e.Identity,
		assertion.RPID)}
}

// assertion returns the assertion, which must be the one that the event has the digest of.
func (a Attestation) assertion(e recording) (parsed passkey.Assertion, err error) {
	if a.Assertion == nil {
		return parsed, fmt.Errorf("the assertion is missing, and the event has its digest, %s", e.AssertionDigest)
	}
	if got := passkey.Digest(a.Assertion); got != e.AssertionDigest {
		return parsed, fmt.Errorf("the assertion has the digest %s, and the event says %s", got, e.AssertionDigest)
	}
	return passkey.ParseAssertion(a.Assertion)
}

// unconfirmed is confirmed without the envelope or the event: it checks what is left, and says why that
// does not show that a passkey has confirmed the attestation.
func (a Attestation) unconfirmed(e recording, signed *attestation.Attestation, why string) []Check {
	checks := a.confirmed(e, signed)
	for i, c := range checks {
		if c.Status != Failed {
			checks[i] = Skipped(CheckPasskey, "%s", why)
		}
	}
	return checks
}
