// Package attestation tells what was said: it reads DSSE envelopes, Sigstore bundles
// and the in-toto statements in them, and makes them.
package attestation

import (
	"crypto/sha256"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// An Attestation is a verified statement about a commit.
type Attestation struct {
	Commit string
	// Predicate is what it is for: the name in a predicate of the ledger's own
	// type, else PredicateType.
	Predicate     string
	PredicateType string
	Result        ledger.Result
	Signer        identity.Signer
	// Payload is the statement as it was signed.
	Payload []byte
	// PayloadDigest is the SHA-256 of the payload bytes.
	PayloadDigest [sha256.Size]byte
	// Envelope is the body that was given to Verify, not a copy.
	Envelope []byte
}

// Verify reads an envelope or bundle, finds out which of the org's identities
// signed it, and returns what its statement says. The time that counts for
// certificates is now, never one that the envelope claims. Every error is a
// *ledger.Error.
func Verify(body []byte, keys *identity.Keyring, now ledger.Time) (*Attestation, error) {
	env, err := ParseEnvelope(body)
	if err != nil {
		return nil, err
	}
	signer, err := keys.Verify(&env.Signed, now.Std())
	if err != nil {
		return nil, err
	}
	said, err := parseStatement(env.Payload)
	if err != nil {
		return nil, err
	}
	return &Attestation{
		Commit:        said.commit,
		Predicate:     said.predicate,
		PredicateType: said.predicateType,
		Result:        said.result,
		Signer:        signer,
		Payload:       env.Payload,
		PayloadDigest: sha256.Sum256(env.Payload),
		Envelope:      body,
	}, nil
}

// CertifiedKey returns the digest of an envelope's signing key, as in [identity.Signer],
// if the envelope has a certificate. If it has none, ok is false, and the key is
// that of the identity that signed. CertifiedKey does not verify the envelope:
// [Verify] must have accepted it before.
func CertifiedKey(envelope []byte) (digest [sha256.Size]byte, ok bool, err error) {
	env, err := ParseEnvelope(envelope)
	if err != nil || len(env.Certificates) == 0 {
		return digest, false, err
	}
	digest, _, err = identity.DigestKey(env.Certificates[0].PublicKey)
	return digest, err == nil, err
}
