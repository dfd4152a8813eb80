package verify

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
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
	// Event is the body of the event of its recording, and Said what it says. Check parses Event if Said is nil.
	Event []byte
	Said  *ledger.AttestationEvent
	// EnvelopeDigest is that of an envelope that was pruned; nil if it is not known.
	EnvelopeDigest []byte
	// Record is what the ledger shows; nil if only files are read.
	Record *ledger.AttestationRecord
	// IsOriginal reports whether the record is known to have the outcome with which it was recorded, as the
	// event has it. IsRemapped reports whether it may have another one, by later rules, and IsUnmapped whether
	// it has one by earlier rules, which are not known any more.
	IsOriginal, IsRemapped, IsUnmapped bool
	// Assertion is the text of the assertion of the passkey that has confirmed the statement; nil if the
	// ledger does not show it.
	Assertion []byte
	// Passkeys are those in the log, and Index is the number of the event among all of the org. Both are
	// only needed if IsConfirmed.
	Passkeys Passkeys
	Index    int64
}

// Check checks that a trusted key has signed the attestation, that the event of its recording
// has its digests, that the ledger shows what was signed, and that a passkey has confirmed it if the
// event says so. It returns what was signed, or nil if the signature is not valid.
//
// If the ledger has pruned the envelope, the event or both, which are nil, Check checks what is left. Without
// the envelope, nothing shows what was signed, and the record must be what the event says. Without the
// event, nothing shows that the log has this attestation, and the record must be what was signed.
func (a Attestation) Check(keys Keys) (checks []Check, signed *attestation.Attestation) {
	if err := a.read(); err != nil {
		if a.Envelope == nil {
			return []Check{Failure(CheckRecord, "%v", err)}, nil
		}
		return []Check{Failure(CheckDigests, "%v", err)}, nil
	}
	switch {
	case a.Said != nil && a.Envelope != nil:
		return a.check(keys)
	case a.Said != nil:
		return a.checkRecord(), nil
	case a.Envelope != nil:
		return a.checkEnvelope(keys)
	}

	checks = []Check{Skipped(CheckSignature, PrunedEvent), Skipped(CheckDigests, PrunedEvent),
		Skipped(CheckRecord, PrunedEvent)}
	return append(checks, a.unconfirmed(eventOf(a.Record), nil, PrunedEvent)...), nil
}

// read parses Event into Said, if the caller has not.
func (a *Attestation) read() error {
	if a.Said != nil || a.Event == nil {
		return nil
	}
	var e ledger.AttestationEvent
	if err := ledger.DecodeOpen(a.Event, &e); err != nil {
		return fmt.Errorf("parse the event: %w", err)
	}
	if e.Type != ledger.EventAttestation {
		return fmt.Errorf("the event %s has the type %s, not attestation", e.ID, e.Type)
	}
	a.Said = &e
	return nil
}

// check checks an attestation with its envelope and its event.
func (a Attestation) check(keys Keys) (checks []Check, signed *attestation.Attestation) {
	e := *a.Said
	signed, err := a.open(keys, e)
	if signed == nil {
		checks = append(checks, Failure(CheckSignature, "%v", err), a.digests(e, nil),
			Skipped(CheckRecord, "the signature is not valid"))
		return append(checks, a.confirmed(e, nil)...), nil
	}
	checks = append(checks, signedBy(keys, e, signed), a.digests(e, signed), a.record(e, signed, err))
	return append(checks, a.confirmed(e, signed)...), signed
}

// PrunedEvent is why an attestation is not compared with the event of its recording.
const PrunedEvent = "the ledger has pruned the event"

// eventOf returns the event that a record says it has.
func eventOf(r *ledger.AttestationRecord) ledger.AttestationEvent {
	return ledger.AttestationEvent{
		ID: r.Event, Org: r.Org, Repo: r.Repo, Commit: r.Commit, Predicate: r.Predicate, Identity: r.Identity,
		Result: r.Result, Timestamp: r.RecordedAt, Attestation: r.ID, PayloadDigest: r.PayloadDigest,
		AssertionDigest: r.AssertionDigest, Base: r.Base,
	}
}

// checkEnvelope checks the envelope against the record, instead of the event.
func (a Attestation) checkEnvelope(keys Keys) ([]Check, *attestation.Attestation) {
	e := eventOf(a.Record)
	signed, err := a.open(keys, e)
	if signed == nil {
		return append([]Check{Failure(CheckSignature, "%v", err), Skipped(CheckDigests, PrunedEvent),
			Skipped(CheckRecord, "the signature is not valid")}, a.confirmed(e, nil)...), nil
	}

	digests, record := a.digests(e, signed), a.isSigned(e, signed, err)
	if digests.Status == OK {
		digests = Skipped(CheckDigests, PrunedEvent)
	}
	if record.Status == OK {
		record = Skipped(CheckRecord, PrunedEvent)
	}
	return append([]Check{signedBy(keys, e, signed), digests, record}, a.unconfirmed(e, signed, PrunedEvent)...), signed
}

// checkRecord checks the record against the event, without the envelope.
func (a Attestation) checkRecord() []Check {
	const why = "the ledger has pruned the envelope"
	e, r := *a.Said, a.Record
	dn, err := identity.ParseDN(e.Identity)
	if err != nil {
		return []Check{Failure(CheckRecord, "parse the event: %v", err)}
	}
	digests := Skipped(CheckDigests, why)
	if got := digestText(a.EnvelopeDigest); a.EnvelopeDigest != nil && e.EnvelopeDigest != "" && got != e.EnvelopeDigest {
		digests = wrongEnvelope(got, e)
	}

	claims := append(a.recordedClaims(e), claim{"signer", r.Signer, dn.CN})
	if e.Key != "" {
		claims = a.claimKey(claims, e, e.Key)
	}
	if !a.IsOriginal && !a.isMappedOtherwise(e) {
		claims = append(claims, outcomeClaims(r, e)...)
	}
	return append([]Check{Skipped(CheckSignature, why), digests, checkClaims(claims, "it is what the event says")},
		a.unconfirmed(e, nil, why)...)
}

func signedBy(keys Keys, e ledger.AttestationEvent, signed *attestation.Attestation) Check {
	return Passed(CheckSignature, "by %s, with the key %x of %s, %s", e.Identity, signed.Signer.Key[:8],
		signed.Signer.Identity, keys.source())
}

// isMappedOtherwise reports whether the event has another predicate or result than the rules of today give:
// earlier versions had the type as the predicate of most statements.
func (a Attestation) isMappedOtherwise(e ledger.AttestationEvent) bool {
	return a.IsRemapped || a.IsUnmapped || strings.Contains(e.Predicate, "://")
}

// AttestationID returns the ID of the attestation in the body of the event of its recording.
func AttestationID(event []byte) (string, error) {
	a := Attestation{Event: event}
	if err := a.read(); err != nil {
		return "", err
	}
	if a.Said == nil || a.Said.Attestation == "" {
		return "", errors.New("the event names no attestation")
	}
	return a.Said.Attestation, nil
}

// open verifies the signature with the keys that were trusted when it was recorded, and returns
// what was signed: with an error if only the statement cannot be read, and nil if the signature is not valid.
func (a Attestation) open(keys Keys, e ledger.AttestationEvent) (*attestation.Attestation, error) {
	ring, err := keys.keyring(e.Identity, e.Timestamp)
	if err != nil {
		return nil, err
	}
	var signed *attestation.Attestation
	var unread error
	if keys.ring != nil || attestation.IsCommitObject(a.Envelope) {
		signed, unread = attestation.VerifyRecorded(a.Envelope, e.Commit, ring, e.Timestamp)
	} else { // do not trust the server: accept only what a ledger of this release would record
		signed, unread = attestation.Place{Recorded: e.Commit}.Verify(a.Envelope, ring, e.Timestamp)
	}
	if signed == nil {
		if keys.pinned && attestation.CertificateOf(a.Envelope) != nil {
			return nil, errors.New("pinned keys verify no keyless signatures: a trusted root cannot be pinned")
		}
		return nil, unread
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
	return signed, unread
}

// digests checks that the event has the digests of what is there. signed is what was signed; nil if the signature
// is not valid.
func (a Attestation) digests(e ledger.AttestationEvent, signed *attestation.Attestation) Check {
	var got string
	if signed != nil {
		got = digestText(signed.PayloadDigest[:])
	} else if payload, err := attestation.Payload(a.Envelope); err == nil {
		got = digest(payload)
	} else {
		return Failure(CheckDigests, "%v", err)
	}
	if got != e.PayloadDigest {
		return Failure(CheckDigests, "the payload has the digest %s, and the event says %s", got, e.PayloadDigest)
	}
	if e.EnvelopeDigest == "" {
		return Passed(CheckDigests, "the event has that of the payload, %s, and none of the envelope", e.PayloadDigest)
	}
	if got := digest(a.Envelope); got != e.EnvelopeDigest {
		return wrongEnvelope(got, e)
	}
	return Passed(CheckDigests, "the event has those of the payload, %s, and of the envelope", e.PayloadDigest)
}

func wrongEnvelope(got string, e ledger.AttestationEvent) Check {
	return Failure(CheckDigests, "the envelope has the digest %s, and the event says %s", got, e.EnvelopeDigest)
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return digestText(sum[:])
}

func digestText(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }

// A claim is a field that the ledger shows, with the value that it must have.
type claim struct {
	what        string
	shown, want any
}

// record checks that the event and the record say what was signed. unread is why the statement cannot be
// read, if so.
func (a Attestation) record(e ledger.AttestationEvent, signed *attestation.Attestation, unread error) Check {
	if err := signed.CheckRepo(e.Org, e.Repo); err != nil {
		return Failure(CheckRecord, "%v", err)
	}
	return a.isSigned(e, signed, unread)
}

// isSigned is record without the check of the repo, which may have had another name.
func (a Attestation) isSigned(e ledger.AttestationEvent, signed *attestation.Attestation, unread error) Check {
	if unread != nil && !a.IsRemapped && !a.IsUnmapped {
		return Failure(CheckRecord, "the statement cannot be read: %v", unread)
	}
	var claims []claim
	if r := a.Record; r != nil {
		claims = append(a.claimKey(claims, e, hex.EncodeToString(signed.Signer.Key[:])),
			claim{"signer", r.Signer, signed.Signer.DN.CN})
		claims = append(claims, a.claimSigned(signed, unread)...)
		claims = append(claims, a.recordedClaims(e)...)
	}
	if unread == nil && !a.IsRemapped { // by earlier rules, it may be about another subject
		claims = append(claims, claim{"the event's commit", e.Commit, signed.Commit})
	}
	if e.Base != "" {
		claims = append(claims, claim{"the event's base", e.Base, signed.Base})
	}
	if !a.isMappedOtherwise(e) {
		claims = append(claims, claim{"the event's predicate", e.Predicate, signed.Predicate},
			claim{"the event's result", resultText(e.Result), resultText(signed.Result)})
	}

	return checkClaims(claims, "%s %s on %s in %s/%s at %s", signed.Predicate, signed.Result.Status, signed.Commit, e.Org,
		e.Repo, e.Timestamp)
}

// claimSigned returns what the ledger shows of a statement.
func (a Attestation) claimSigned(signed *attestation.Attestation, unread error) []claim {
	r, want := a.Record, signed.Outcome
	if a.IsRemapped {
		want = attestation.RemapAgain(attestation.Recorded{
			Envelope: signed.Envelope, PredicateType: r.PredicateType, Commit: r.Commit, RecordedAt: r.RecordedAt,
			Outcome: attestation.Outcome{Predicate: r.Predicate, Slot: r.Slot, Result: r.Result},
		}).Outcome
	}
	var claims []claim
	if !a.IsUnmapped {
		claims = []claim{{"predicate", r.Predicate, want.Predicate}, {"slot", r.Slot, want.Slot},
			{"result", resultText(r.Result), resultText(want.Result)}}
	}
	if unread != nil {
		return claims
	}
	claims = append(claims, claim{"predicate type", r.PredicateType, signed.PredicateType})
	if !a.IsRemapped { // else it may be about another subject
		claims = append(claims, claim{"commit", r.Commit, signed.Commit})
	}
	if r.Reason != "" { // earlier releases recorded none
		claims = append(claims, claim{"reason", r.Reason, signed.Reason()})
	}
	return claims
}

// claimKey adds the digest of the signer's key to claims. Attestations of earlier releases may have none, neither
// in the record nor in the event.
func (a Attestation) claimKey(claims []claim, e ledger.AttestationEvent, want string) []claim {
	if v := a.Record.Verification; v != nil && (v.Key != "" || e.Key != "") {
		claims = append(claims, claim{"key", v.Key, want})
	}
	return claims
}

// recordedClaims returns what the ledger shows of how an attestation was recorded.
func (a Attestation) recordedClaims(e ledger.AttestationEvent) []claim {
	r := a.Record
	claims := []claim{
		{"identity", r.Identity, e.Identity}, {"payload digest", r.PayloadDigest, e.PayloadDigest},
		{"repo", strings.Join([]string{r.Org, r.Repo}, "/"), e.Org + "/" + e.Repo}, {"ID", r.ID, e.Attestation},
		{"event", r.Event, e.ID}, {"time", r.RecordedAt, e.Timestamp}, {"commit", r.Commit, e.Commit},
		{"assertion digest", r.AssertionDigest, e.AssertionDigest}, {"base", r.Base, e.Base},
	}
	if a.IsOriginal {
		claims = append(claims, outcomeClaims(r, e)...)
	}
	return claims
}

func outcomeClaims(r *ledger.AttestationRecord, e ledger.AttestationEvent) []claim {
	return []claim{{"predicate", r.Predicate, e.Predicate}, {"result", resultText(r.Result), resultText(e.Result)}}
}

func resultText(r ledger.Result) string { return fmt.Sprintf("%s after %d ms", r.Status, r.DurationMS) }

// checkClaims checks that each claim has its value. The format says what was found if they have.
func checkClaims(claims []claim, format string, args ...any) Check {
	for _, c := range claims {
		if c.shown != c.want {
			return Failure(CheckRecord, "%s: the ledger says %s, and it is %s", c.what, cmp.Or(fmt.Sprint(c.shown), "none"),
				cmp.Or(fmt.Sprint(c.want), "none"))
		}
	}
	return Passed(CheckRecord, format, args...)
}

// IsConfirmed reports whether the event of the recording, or the record, says that a passkey has
// confirmed the attestation. Assertion and Passkeys are then needed.
func (a Attestation) IsConfirmed() bool {
	_ = a.read() // another check reports that it cannot be parsed
	return a.Said != nil && a.Said.AssertionDigest != "" || a.Record != nil && a.Record.AssertionDigest != ""
}

// confirmed checks that a passkey of the signer has confirmed what was signed, and then adds the assertion
// to it. There are no checks without an assertion if the event does not say that a passkey has.
func (a Attestation) confirmed(e ledger.AttestationEvent, signed *attestation.Attestation) []Check {
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
func (a Attestation) assertion(e ledger.AttestationEvent) (parsed passkey.Assertion, err error) {
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
func (a Attestation) unconfirmed(e ledger.AttestationEvent, signed *attestation.Attestation, why string) []Check {
	checks := a.confirmed(e, signed)
	for i, c := range checks {
		if c.Status != Failed {
			checks[i] = Skipped(CheckPasskey, "%s", why)
		}
	}
	return checks
}
