package receipt

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// MaxEnvelope is the maximum length of an envelope in bytes.
const MaxEnvelope = 1 << 20

// envelope is a DSSE envelope. The members in base64 are text, so that Open can check that
// it has no other form.
type envelope struct {
	Payload     string      `json:"payload"`
	PayloadType string      `json:"payloadType"`
	Signatures  []signature `json:"signatures"`
}

type signature struct {
	KeyID string `json:"keyid"`
	Sig   string `json:"sig"`
}

// Sign returns the DSSE envelope of a receipt, which must be valid. The key is an ECDSA key
// on P-256.
func (r Receipt) Sign(key crypto.Signer) ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("sign receipt: %w", err)
	}
	if err := checkKey(key.Public()); err != nil {
		return nil, fmt.Errorf("sign receipt: %w", err)
	}
	payload, err := r.Payload()
	if err != nil {
		return nil, err
	}
	return attestation.SignDSSE(key, payload)
}

// Open verifies the signature of an envelope with the key, and returns the receipt. It does
// not check what the receipt is for, or that it is still valid: call Check.
func Open(text []byte, key *ecdsa.PublicKey) (Receipt, error) {
	payload, keyID, sig, err := parseEnvelope(text)
	if err != nil {
		return Receipt{}, err
	}
	if err := checkKey(key); err != nil {
		return Receipt{}, err
	}
	id, err := identity.Fingerprint(key)
	if err != nil {
		return Receipt{}, err
	}
	if keyID != id {
		return Receipt{}, fault("signatures[0].keyid", "the receipt is signed with the key %q, not %s", keyID, id)
	}

	sum := sha256.Sum256(attestation.PAE(attestation.StatementType, payload))
	if !ecdsa.VerifyASN1(key, sum[:], sig) {
		return Receipt{}, fault("signatures[0].sig", "the signature of the receipt is not valid")
	}
	return Parse(payload)
}

// Read returns what an envelope says, without verifying the signature.
func Read(text []byte) (Receipt, error) {
	payload, _, _, err := parseEnvelope(text)
	if err != nil {
		return Receipt{}, err
	}
	return Parse(payload)
}

func parseEnvelope(text []byte) (payload []byte, keyID string, sig []byte, err error) {
	if len(text) > MaxEnvelope {
		return nil, "", nil, fmt.Errorf("the envelope has more than %d bytes", MaxEnvelope)
	}
	var e envelope
	if err := json.Unmarshal(text, &e, json.RejectUnknownMembers(true)); err != nil {
		return nil, "", nil, fmt.Errorf("parse envelope: %w", err)
	}
	if e.PayloadType != attestation.StatementType {
		return nil, "", nil, fault("payloadType", "%q is not %s", e.PayloadType, attestation.StatementType)
	}
	if len(e.Signatures) != 1 {
		return nil, "", nil, fault("signatures", "%d entries, want one", len(e.Signatures))
	}

	if payload, err = decode(e.Payload); err != nil {
		return nil, "", nil, fault("payload", "%v", err)
	}
	if sig, err = decode(e.Signatures[0].Sig); err != nil {
		return nil, "", nil, fault("signatures[0].sig", "%v", err)
	}
	return payload, e.Signatures[0].KeyID, sig, nil
}

// decode decodes standard base64, and accepts only its canonical form.
func decode(s string) ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(b) == 0 || base64.StdEncoding.EncodeToString(b) != s {
		return nil, errors.New("it is not canonical base64")
	}
	return b, nil
}

// checkKey refuses keys that receipts are not signed with.
func checkKey(key crypto.PublicKey) error {
	public, ok := key.(*ecdsa.PublicKey)
	if !ok || public == nil || public.Curve != elliptic.P256() {
		return errors.New("the key of receipts must be an ECDSA key on P-256")
	}
	return nil
}

// ParsePublicKey parses a public key in PEM.
func ParsePublicKey(text []byte) (*ecdsa.PublicKey, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "PUBLIC KEY" || len(rest) > 0 {
		return nil, errors.New("want one public key in PEM (PUBLIC KEY)")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse public key: %w", err)
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	return key.(*ecdsa.PublicKey), nil
}

// A Want says what a receipt must be for.
type Want struct {
	Org, Repo, Commit string
	// State must have been reached.
	State ledger.State
	// Target is the branch for which the receipt must be; empty for all that the commit is
	// meant for.
	Target string
	// PolicyDigest is that of the contract, with "sha256:"; empty for any contract.
	PolicyDigest string
}

// clockSkew is how far the clock of the ledger may be ahead.
const clockSkew = 5 * 60 * 1000 // milliseconds

// Check returns an error unless the receipt is for what is wanted, and valid now.
func (r Receipt) Check(want Want, now ledger.Time) error {
	if err := r.checkTime(now); err != nil {
		return err
	}
	return r.checkSubject(want)
}

func (r Receipt) checkTime(now ledger.Time) error {
	switch {
	case r.CreatedAt > now+clockSkew:
		return fault("predicate.timeCreated", "the receipt is from the future: %s", r.CreatedAt)
	case r.ValidUntil <= now:
		return fault("predicate.ledgerd.validUntil", "the receipt was valid until %s (get a new one)", r.ValidUntil)
	}
	return nil
}

func (r Receipt) checkSubject(want Want) error {
	const x = "predicate.ledgerd."
	switch {
	case r.Org != want.Org:
		return fault(x+"org", "the receipt is for the org %s, not %s", r.Org, want.Org)
	case r.Repo != want.Repo:
		return fault(x+"repo", "the receipt is for the repo %s, not %s", r.Repo, want.Repo)
	case r.Commit != want.Commit:
		return fault(x+"commit", "the receipt is for the commit %s, not %s", r.Commit, want.Commit)
	case want.State < ledger.Attested || r.State < want.State:
		return fault(x+"state", "the receipt says %s, not %s", r.State, want.State)
	case !r.says(want.State):
		return fault(x+"standing", "the receipt says %s, but the standing was %s, not %s", r.State, *r.Standing, want.State)
	case r.Target != want.Target:
		return fault(x+"target", "the receipt is for the target branch %q, not %q", r.Target, want.Target)
	case want.PolicyDigest != "" && r.PolicyDigest != want.PolicyDigest:
		return fault("predicate.verifier.policies[0].digest.sha256", "the policy is %s, not %s", r.PolicyDigest,
			want.PolicyDigest)
	}
	return nil
}
