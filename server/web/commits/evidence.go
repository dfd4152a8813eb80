package commits

import (
	"crypto"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"regexp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// The files below are what the corruption check in the browser fetches (static/check.js), and
// what people download to check an attestation with other tools.

func downloadEnvelope(v *page.Visit) (*page.Response, error) {
	body, err := v.API.Envelope(v.Ctx(), v.Org, v.Repo, v.Value("id"))
	if err != nil {
		return nil, err
	}
	if attestation.IsCommitObject(body) {
		return page.File(v.Value("id")+".commit", "application/octet-stream", body), nil
	}
	return page.File(v.Value("id")+".json", "application/json", body), nil
}

// downloadAssertion returns what a passkey has signed to confirm the attestation.
func downloadAssertion(v *page.Visit) (*page.Response, error) {
	text, err := v.API.Assertion(v.Ctx(), v.Org, v.Repo, v.Value("id"))
	if err != nil {
		return nil, err
	}
	return page.File(v.Value("id")+".assertion.json", "application/json", text), nil
}

// downloadProof returns the proof that the attestation is in the log.
func downloadProof(v *page.Visit) (*page.Response, error) {
	proof, err := v.API.AttestationProof(v.Ctx(), v.Org, v.Repo, v.Value("id"))
	if err != nil {
		return nil, err
	}
	return page.File(v.Value("id")+".proof", "text/plain; charset=utf-8", proof), nil
}

// downloadEvent returns the body of the attestation's event, byte for byte.
func downloadEvent(v *page.Visit) (*page.Response, error) {
	record, err := v.API.Attestation(v.Ctx(), v.Org, v.Repo, v.Value("id"))
	if err != nil {
		return nil, err
	}
	body, err := v.API.Event(v.Ctx(), v.Org, record.Event)
	if err != nil {
		return nil, err
	}
	return page.File(record.Event+".json", "application/json", body), nil
}

// downloadKey returns the public key that signed the attestation, in the form that cosign and
// openssl read.
func downloadKey(v *page.Visit) (*page.Response, error) {
	record, err := v.API.Attestation(v.Ctx(), v.Org, v.Repo, v.Value("id"))
	if err != nil {
		return nil, err
	}
	body, err := v.API.Envelope(v.Ctx(), v.Org, v.Repo, record.ID)
	if err != nil {
		return nil, err
	}
	trusted, err := trustedBy(v, record.Verification)
	if err != nil {
		return nil, err
	}

	spki := keyOf(record.Verification, body, trusted)
	if spki == nil {
		return nil, ledger.Errorf(ledger.CodeNotFound, "the ledger does not know the key that signed %s", record.ID)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki})
	return page.File(record.ID+".pub", "application/x-pem-file", text), nil
}

// trustedBy returns the identity that made an attestation trusted, or nil if it is unknown.
func trustedBy(v *page.Visit, verified *ledger.Verification) (*identity.Identity, error) {
	if verified == nil {
		return nil, nil
	}
	i, err := v.API.Identity(v.Ctx(), v.Org, verified.IdentityID)
	switch {
	case page.CodeOf(err) == ledger.CodeNotFound:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &i, nil
}

// keyOf returns the DER SubjectPublicKeyInfo of the key that signed an envelope: that of the
// certificate in it, or that of the identity. It returns nil if neither is the key that was
// recorded.
func keyOf(verified *ledger.Verification, envelope []byte, trusted *identity.Identity) []byte {
	if verified == nil {
		return nil
	}
	var candidates []crypto.PublicKey
	if parsed, err := attestation.ParseEnvelope(envelope); err == nil && len(parsed.Certificates) > 0 {
		candidates = append(candidates, parsed.Certificates[0].PublicKey)
	}
	if trusted != nil {
		if key, err := trusted.PublicKey(); err == nil {
			candidates = append(candidates, key)
		}
	}

	for _, key := range candidates {
		digest, spki, err := identity.DigestKey(key)
		if err == nil && hex.EncodeToString(digest[:]) == verified.Key {
			return spki
		}
	}
	return nil
}

// plainURI matches the predicate types that need no quotes in a shell.
var plainURI = regexp.MustCompile(`^[A-Za-z0-9._~:/@+=%-]+$`)

// cosignCommand returns the command with which cosign verifies the signature of an envelope
// that was downloaded, or "" if it cannot: a certificate needs a trusted root of sigstore.
// cosign would refuse a statement that is about no file unless its claims are not checked.
func cosignCommand(record ledger.AttestationRecord, envelope []byte) string {
	var bundle struct {
		DSSE jsontext.Value `json:"dsseEnvelope"`
	}
	parsed, err := attestation.ParseEnvelope(envelope)
	if err != nil || !plainURI.MatchString(record.PredicateType) || json.Unmarshal(envelope, &bundle) != nil {
		return ""
	}
	file := "--signature " + record.ID + ".json --new-bundle-format=false"
	if bundle.DSSE != nil {
		file = "--bundle " + record.ID + ".json"
		if len(parsed.Certificates) > 0 {
			return ""
		}
	}
	return fmt.Sprintf("cosign verify-blob-attestation --key %s.pub %s --type %s --check-claims=false "+
		"--insecure-ignore-tlog", record.ID, file, record.PredicateType)
}
