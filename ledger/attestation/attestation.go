// Package attestation parses and creates DSSE envelopes, Sigstore bundles, and the
// in-toto statements in them.
package attestation

import (
	"crypto/sha256"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// An Attestation is a verified statement about a commit.
type Attestation struct {
	Commit string
	// Predicate is the name in a predicate of the ledger's own type, such as test:go.
	// For other types, it is PredicateType.
	Predicate     string
	PredicateType string
	Result        ledger.Result
	Signer        identity.Signer
	// Payload is the signed bytes of the statement.
	Payload []byte
	// PayloadDigest is the SHA-256 of the payload bytes.
	PayloadDigest [sha256.Size]byte
	// Envelope is the body passed to Verify, not a copy.
	Envelope []byte
}

// Verify parses an envelope or bundle, verifies that one of the org's identities signed
// it, and returns its statement. Certificates must be valid at the time now; times in
// the envelope are ignored. Every error is a *ledger.Error.
func Verify(body []byte, keys *identity.Keyring, now ledger.Time) (*Attestation, error) {
	env, err := ParseEnvelope(body)
	if err != nil {
		return nil, err
	}
	signer, err := keys.Verify(&env.Signed, now.Std())
	if err != nil {
		return nil, err
	}

	st, err := parseStatement(env.Payload)
	if err != nil {
		return nil, err
	}
	return &Attestation{
		Commit:        st.commit,
		Predicate:     st.predicate,
		PredicateType: st.predicateType,
		Result:        st.result,
		Signer:        signer,
		Payload:       env.Payload,
		PayloadDigest: sha256.Sum256(env.Payload),
		Envelope:      body,
	}, nil
}

// CertifiedKey returns the digest of the signing key, as in [identity.Signer], from the
// certificate of an envelope. Without a certificate, ok is false; the signing key is then
// the key of the signer's identity. CertifiedKey does not verify the envelope: [Verify]
// must have accepted it before.
func CertifiedKey(envelope []byte) (digest [sha256.Size]byte, ok bool, err error) {
	env, err := ParseEnvelope(envelope)
	if err != nil || len(env.Certificates) == 0 {
		return digest, false, err
	}
	digest, _, err = identity.DigestKey(env.Certificates[0].PublicKey)
	return digest, err == nil, err
}
