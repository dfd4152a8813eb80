package attestation

import (
	"crypto/sha256"

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
	signer, err := vouchers.Signer(SignedCommitPredicate)
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
