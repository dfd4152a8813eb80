package record

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	ledgerfacts "github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/internal/envelope"
)

// ErrKeyringChanged means that an identity was added, changed or revoked, or two people
// became one, between the verification of an attestation and its recording. The attestation
// must be verified again.
var ErrKeyringChanged = errors.New("the org's identities or the repo's web URL changed after the attestation " +
	"was verified")

// A Verify verifies an attestation for the repo at a place, with the keyring of its org.
type Verify func(attestation.Place, *identity.Keyring) (*attestation.Attestation, error)

// A Recording is an attestation to be recorded, and then the result.
type Recording struct {
	re             *Recorder // set before it is written
	Org, Repo      string
	Attestation    *attestation.Attestation
	Envelope       envelope.Packed
	KeyringVersion int64
	webURL         string       // that of the repo, as the statement was read
	verify         Verify       // nil if the caller must verify it again
	by             ledger.Actor // who sent it
	Identity       string       // the signer's DN
	key            string       // hex SHA-256 of the signer's key
	envelopeDigest string
	// assertion is that of the passkey which has confirmed the statement, and assertionDigest its
	// SHA-256; nil without a passkey.
	assertion, assertionDigest any
	// people are those who have the signer's name or key: one, or two who become one.
	people []int64
	// verdicts holds what expressions say of the attestation.
	verdicts map[string]policy.Verdict
	// merge is what a claim of a merge is recorded with; nil for other statements.
	merge *mergeFact
	// uncovered says why it does not count as a deployment for what it ships; nil if it may.
	uncovered []string

	// The result is a record, or the reason why the attestation was refused.
	Record   ledger.AttestationRecord
	Created  bool
	Err      error
	contract *policy.Contract // the active one
}

// NewRecording returns the recording of a verified attestation in a repo, by the version of the keyring.
func NewRecording(org, repo string, a *attestation.Attestation, keyringVersion int64) *Recording {
	digest := sha256.Sum256(a.Envelope)
	r := &Recording{
		Org: org, Repo: repo,
		Envelope:       envelope.Pack(a.Envelope, a.Payload),
		envelopeDigest: facts.DigestText(digest[:]),
	}
	r.SetVerified(a, keyringVersion)
	if len(a.Assertion) > 0 {
		sum := sha256.Sum256(a.Assertion)
		r.assertion, r.assertionDigest = a.Assertion, sum[:]
	}
	return r
}

// SetVerified sets the attestation, as a keyring has verified it.
func (r *Recording) SetVerified(a *attestation.Attestation, keyringVersion int64) {
	r.Attestation, r.KeyringVersion = a, keyringVersion
	r.Identity, r.key = a.Signer.DN.String(), hex.EncodeToString(a.Signer.Key[:])
}

// evidence returns the evidence in the attestation, without the data of its record.
func (r *Recording) evidence() policy.Evidence {
	e := ledgerfacts.Evidence(r.Attestation)
	e.Base = r.Attestation.Base
	return e
}

// checkBaseline refuses a baseline by somebody who does not deploy to its environment. The commit is nil if it is new.
func (r *Recording) checkBaseline(s *facts.Commit) error {
	var f policy.Facts
	if s != nil {
		f = s.Facts
	}
	return r.contract.CheckBaseline(f, r.evidence(), &r.Attestation.Signer)
}

// setStale refuses a statement that the same person's evidence has overtaken. It reports
// whether it has.
func (r *Recording) setStale(recorded []policy.Evidence) bool {
	e := r.evidence()
	for _, e.Person = range r.people {
		if by := policy.Overtaken(recorded, &e); by != "" {
			r.Err = ledger.Errorf(ledger.CodeStaleStatement,
				"this statement finished before %s, which has a worse result for %s: run the check again", by, e.Predicate)
			return true
		}
	}
	return false
}

// cause returns the cause of the transitions that the recording of an attestation has.
func (r *Recording) cause() ledger.Cause {
	if r.Attestation.Exception != nil {
		return ledger.Cause{Type: ledger.CauseException, ID: r.Record.ID}
	}
	return ledger.Cause{Type: ledger.CauseAttestation, ID: r.Record.ID}
}

// A duplicate is an existing record of a statement.
type duplicate struct {
	rec        ledger.AttestationRecord
	replacedBy string // the same person's latest attestation; empty if it is rec
	// isDistrusted reports that the record is distrusted, and has the same signer and key.
	isDistrusted bool
}

// setDuplicate sets the result for a statement that is already recorded.
func (r *Recording) setDuplicate(dup *duplicate) {
	if dup.isDistrusted {
		r.Err = ledger.Errorf(ledger.CodeStaleStatement,
			"this statement is already recorded as %s, which is distrusted: "+
				"sign a new statement, for example with another startedOn and finishedOn", dup.rec.ID)
		return
	}
	if dup.replacedBy == "" {
		r.Record = dup.rec
		return
	}
	r.Err = ledger.Errorf(ledger.CodeStaleStatement,
		"this statement is already recorded as %s, which %s has replaced: "+
			"sign a new statement, for example with another startedOn and finishedOn",
		dup.rec.ID, dup.replacedBy)
}

// A mergeFact is what a claim of a merge is recorded with.
type mergeFact struct {
	// reason is why nothing carries, because the claim does not agree with what is proven.
	reason string
	// replaced holds the row ids of the attestations with earlier claims of the same person
	// about the same source.
	replaced []int64
}

// An unverified is the txn.Unready error of a recording that was verified with an earlier keyring, or a former web URL
// of the repo.
type unverified struct{ *Recording }

func (*unverified) Error() string { return ErrKeyringChanged.Error() }

// Prepare implements txn.Unready.
func (u *unverified) Prepare(ctx context.Context) error {
	if u.verify == nil {
		return ErrKeyringChanged
	}
	by, err := u.re.present(ctx, u.Org, u.Repo)
	if err != nil {
		return err
	}
	a, err := u.verify(by.place(), by.keyring)
	if err != nil {
		return err
	}
	u.SetVerified(a, by.version)
	u.webURL = by.webURL
	return nil
}
