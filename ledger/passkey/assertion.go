package passkey

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-webauthn/webauthn/protocol"

	"github.com/ledgerd/ledgerd/ledger"
)

// MaxAssertion is the maximum size of an assertion in bytes.
const MaxAssertion = 16 << 10

// A Confirmation is what the browser returns when a passkey has confirmed a review.
type Confirmation struct {
	CredentialID []byte `json:"credential_id"`
	// ClientData is the JSON text of the browser: what was confirmed, and on which page.
	ClientData []byte `json:"client_data"`
	// AuthenticatorData says for which domain the passkey is, and whether it has verified the user.
	AuthenticatorData []byte `json:"authenticator_data"`
	// Signature is the passkey's, of AuthenticatorData and the SHA-256 of ClientData.
	Signature []byte `json:"signature"`
}

// An Assertion is the evidence that a passkey confirmed a review. It can be verified with nothing
// but the statement; whose the passkey is, is in the log of the org.
type Assertion struct {
	RPID string `json:"rp_id"`
	// PublicKey is that of the passkey, in the form of COSE.
	PublicKey []byte `json:"public_key"`
	Confirmation
}

// Assertion returns the evidence that the passkey has confirmed a statement on the pages of a
// party. It returns CodeInvalidAssertion if it has not.
func (p Passkey) Assertion(party Party, c Confirmation, payload []byte) (Assertion, error) {
	a := Assertion{RPID: p.RPID, PublicKey: p.PublicKey, Confirmation: c}
	if p.RPID != party.ID {
		return a, invalid("the passkey is for %s, and this server is %s", p.RPID, party.ID)
	}
	origin, err := a.verify(payload)
	if err == nil && origin != party.Origin {
		err = invalid("it was given to a page at %.200q, not at %s", origin, party.Origin)
	}
	return a, err
}

// ParseAssertion parses the JSON text of an assertion. It does not verify it.
func ParseAssertion(text []byte) (a Assertion, err error) {
	if err := checkSize(text); err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, invalid("parse it: %v", err)
	}
	return a, nil
}

// Text returns the assertion as JSON, which is what is kept of it. It returns CodeInvalidAssertion if
// ParseAssertion would refuse it.
func (a Assertion) Text() ([]byte, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("encode an assertion: %w", err)
	}
	return text, checkSize(text)
}

func checkSize(text []byte) error {
	if len(text) > MaxAssertion {
		return invalid("it has %d bytes, and may have at most %d", len(text), MaxAssertion)
	}
	return nil
}

// Key returns the fingerprint of the passkey.
func (a Assertion) Key() string { return Fingerprint(a.PublicKey) }

// Verify returns CodeInvalidAssertion unless the passkey has confirmed the statement, for its
// domain and with its user verified, such as by a fingerprint or a PIN.
func (a Assertion) Verify(payload []byte) error {
	_, err := a.verify(payload)
	return err
}

// verify also returns the origin of the page that the passkey has confirmed the statement to.
func (a Assertion) verify(payload []byte) (origin string, err error) {
	parsed, err := a.parse()
	if err != nil {
		return "", err
	}
	origin = parsed.Response.CollectedClientData.Origin
	if !isDomain(a.RPID) || !isOriginOf(origin, a.RPID) {
		return origin, invalid("a page at %.200q cannot use passkeys for %.100q", origin, a.RPID)
	}

	challenge := Challenge(payload)
	// Cross-origin is not allowed, the user is present and verified, and no opaque origin counts.
	err = parsed.Verify(encoded(challenge[:]), a.RPID, "", []string{origin}, nil, nil,
		protocol.TopOriginExplicitVerificationMode, false, true, true, a.PublicKey, protocol.SignaturePolicy{})
	if err != nil {
		return origin, invalid("%s", reasonOf(err))
	}
	return origin, nil
}

// parse returns the assertion in the form of the library. What the browser may add, such as results
// of extensions, is not part of it.
func (a Assertion) parse() (*protocol.ParsedCredentialAssertionData, error) {
	if n := len(a.CredentialID); n == 0 || n > maxCredentialID {
		return nil, invalid("its credential_id has %d bytes, and must have 1 to %d", n, maxCredentialID)
	}
	if _, err := publicKey(a.PublicKey); err != nil {
		return nil, invalid("its public_key: %v", err)
	}
	response := protocol.CredentialAssertionResponse{
		PublicKeyCredential: protocol.PublicKeyCredential{
			Credential: protocol.Credential{ID: encoded(a.CredentialID), Type: string(protocol.PublicKeyCredentialType)},
			RawID:      a.CredentialID,
		},
		AssertionResponse: protocol.AuthenticatorAssertionResponse{
			AuthenticatorResponse: protocol.AuthenticatorResponse{ClientDataJSON: a.ClientData},
			AuthenticatorData:     a.AuthenticatorData, Signature: a.Signature,
		},
	}
	parsed, err := response.Parse()
	if err != nil {
		return nil, invalid("%s", reasonOf(err))
	}
	return parsed, nil
}

// Digest returns "sha256:" and the SHA-256 of the text of an assertion in hex; "" if there is no
// assertion.
func Digest(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func invalid(format string, args ...any) error {
	return ledger.Errorf(ledger.CodeInvalidAssertion, "the assertion of the passkey is invalid: "+format, args...)
}
