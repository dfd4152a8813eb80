package attestation

import (
	"crypto/sha256"
	"crypto/x509"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// OfCommit returns the SSH signature in a commit object as an attestation of the commit by
// the key's owner. The key must be one that the org trusts now, and its identity must be
// allowed to attest SignedCommitPredicate. The payload and the envelope of the attestation
// are the commit object. The error says why the signature gives no attestation.
func OfCommit(o *gitobject.Commit, keys *identity.Keyring, now ledger.Time) (*Attestation, error) {
	key, err := o.VerifySSH()
	switch {
	case err != nil:
		return nil, ledger.Errorf(ledger.CodeInvalidSignature, "%v", err)
	case key.Certified:
		return nil, ledger.Errorf(ledger.CodeUntrustedIdentity, "SSH certificates are not supported (sign with the key)")
	}
	vouchers, err := keys.Holders(key.PublicKey, now.Std())
	if err != nil {
		return nil, err
	}
	signer, err := vouchers.Signer(SignedCommitPredicate, o.ID)
	if err != nil {
		return nil, err
	}

	return &Attestation{
		Outcome:       Outcome{Predicate: SignedCommitPredicate, Result: ledger.Result{Status: ledger.Pass}},
		Commit:        o.ID,
		PredicateType: SignedCommitType,
		Signer:        signer,
		Payload:       o.Object,
		PayloadDigest: sha256.Sum256(o.Object),
		Envelope:      o.Object,
	}, nil
}

// recordedSlack is by how much the time in the record of an attestation may differ from the
// time at which its certificate was valid: the ledger's clock may have been ahead.
const recordedSlack = time.Hour

// VerifyRecorded verifies the signature of an attestation again that was recorded at the given
// time about a commit. Its signature must be by an identity of the keyring, which has no revoked
// ones: what an identity has signed stays recorded. Other than Verify, it does not ask whether
// the attestation could be recorded now.
//
// If only the statement cannot be read, as one that an earlier release has accepted, the
// attestation is returned with the error, and has no outcome.
func VerifyRecorded(body []byte, commit string, keys *identity.Keyring, at ledger.Time) (*Attestation, error) {
	if IsCommitObject(body) {
		object, err := gitobject.Parse(commit, body)
		if err != nil {
			return nil, err
		}
		return OfCommit(object, keys, at)
	}
	env, err := ParseEnvelope(body)
	if err != nil {
		return nil, err
	}
	env.IsRecorded = true
	vouchers, err := keys.Verify(&env.Signed, validNear(env.Certificates, at.Std()))
	if err != nil {
		return nil, err
	}

	st, err := parseStatement(env.Payload, Place{Recorded: commit})
	signer, signerErr := vouchers.Signer(st.outcome.Predicate, commit)
	if signerErr != nil {
		return nil, signerErr
	}
	a := &Attestation{
		Outcome: st.outcome, Commit: st.commit, PredicateType: st.predicateType, Repo: st.repo, Signer: signer,
		Artifacts: st.artifacts, Rollback: st.rollback, Baseline: st.baseline, Changes: st.changes, Again: st.again,
		Payload: env.Payload, PayloadDigest: sha256.Sum256(env.Payload), Envelope: body,
	}
	switch a.PredicateType {
	case ExceptionPredicateType:
		a.Exception = &st.exception
	case MergePredicateType:
		a.Merge = st.merge
	}
	a.readBase()
	return a, err
}

// validNear returns the time nearest to the given one at which the first certificate is valid,
// or the given one if that is too far.
func validNear(certs []*x509.Certificate, at time.Time) time.Time {
	if len(certs) == 0 {
		return at
	}
	from, until := certs[0].NotBefore, certs[0].NotAfter
	switch {
	case at.Before(from) && from.Sub(at) <= recordedSlack:
		return from
	case at.After(until) && at.Sub(until) <= recordedSlack:
		return until
	}
	return at
}
