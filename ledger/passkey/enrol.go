package passkey

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncbor"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/publickey"
)

// Options is what a browser needs to make a passkey.
type Options struct {
	Challenge []byte `json:"challenge"`
	RPID      string `json:"rp_id"`
	// User is the member's ID, and DN the member's DN: devices show its common name.
	User string `json:"user"`
	DN   string `json:"dn"`
	// Algorithms are numbers of COSE, the preferred first.
	Algorithms []int `json:"algorithms"`
	// Enrolled are the credential IDs that the member has, so that no device makes a second one.
	Enrolled  [][]byte    `json:"enrolled"`
	ExpiresAt ledger.Time `json:"expires_at"`
}

// A NewPasskey is the body of a request to enrol a passkey.
type NewPasskey struct {
	Name         string `json:"name"`
	CredentialID []byte `json:"credential_id"`
	// ClientData is the JSON text of the browser, and AttestationObject what the device returns.
	ClientData        []byte `json:"client_data"`
	AttestationObject []byte `json:"attestation_object"`
}

// Algorithms returns the algorithms of keys that are accepted, the preferred first: ES256, EdDSA and
// RS256.
func Algorithms() []int {
	return []int{int(webauthncose.AlgES256), int(webauthncose.AlgEdDSA), int(webauthncose.AlgRS256)}
}

// Verify returns the public key of a passkey that a device has made for a party, in the form of COSE,
// and the challenge, which the caller must have given to this member. Errors are about a field.
// What kind of device it is, is not checked: no attestation is asked for.
func (n NewPasskey) Verify(party Party) (key, challenge []byte, err error) {
	if err := CheckName(n.Name); err != nil {
		return nil, nil, err
	}
	if len(n.CredentialID) == 0 || len(n.CredentialID) > maxCredentialID {
		return nil, nil, invalidField("credential_id", "use 1 to %d bytes", maxCredentialID)
	}
	var client struct {
		Challenge string `json:"challenge"`
	}
	if err := json.Unmarshal(n.ClientData, &client); err != nil {
		return nil, nil, invalidField("client_data", "not JSON: %v", err)
	}
	if challenge, err = base64.RawURLEncoding.DecodeString(client.Challenge); err != nil || len(challenge) != 32 {
		return nil, nil, invalidField("client_data", "its challenge is not one of this server")
	}

	parsed, err := n.parse()
	if err == nil {
		_, err = parsed.Verify(encoded(challenge), party.ID, []string{party.Origin}, nil, nil,
			protocol.TopOriginExplicitVerificationMode, false, true, true, nil, parameters(), protocol.AttestationPolicy{},
			protocol.SignaturePolicy{})
	}
	if err != nil {
		return nil, nil, invalidField("attestation_object", "%s", reasonOf(err))
	}
	return bytes.Clone(parsed.Response.AttestationObject.AuthData.AttData.CredentialPublicKey), challenge, nil
}

// parse returns the request in the form of the library, which does not limit how long it takes to verify it:
// kinds of attestations and keys that are not accepted are refused before.
func (n NewPasskey) parse() (*protocol.ParsedCredentialCreationData, error) {
	parsed, err := protocol.CredentialCreationResponse{
		PublicKeyCredential: protocol.PublicKeyCredential{
			Credential: protocol.Credential{ID: encoded(n.CredentialID), Type: string(protocol.PublicKeyCredentialType)},
			RawID:      n.CredentialID,
		},
		AttestationResponse: protocol.AuthenticatorAttestationResponse{
			AuthenticatorResponse: protocol.AuthenticatorResponse{ClientDataJSON: n.ClientData},
			AttestationObject:     n.AttestationObject,
		},
	}.Parse()
	if err != nil {
		return nil, err
	}

	object := &parsed.Response.AttestationObject
	if err := checkAttestation(object); err != nil {
		return nil, err
	}
	if _, err := publicKey(object.AuthData.AttData.CredentialPublicKey); err != nil {
		return nil, fmt.Errorf("its key: %w", err)
	}
	return parsed, nil
}

// checkAttestation returns an error unless the passkey has no attestation, or has attested itself. Browsers
// send no other kind, because the page asks for none. Verifying other kinds means parsing certificates, which
// anyone can send.
func checkAttestation(o *protocol.AttestationObject) error {
	_, certified := o.AttStatement["x5c"]
	_, anonymous := o.AttStatement["ecdaaKeyId"]
	switch format := protocol.AttestationFormat(o.Format); {
	case format == protocol.AttestationFormatNone:
		return nil
	case format != protocol.AttestationFormatPacked || certified || anonymous:
		return fmt.Errorf("its attestation has the format %.32q (use none or self attestation)", o.Format)
	}
	return nil
}

// parameters returns the algorithms in the form of the library.
func parameters() []protocol.CredentialParameter {
	var list []protocol.CredentialParameter
	for _, a := range Algorithms() {
		list = append(list, protocol.CredentialParameter{
			Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.COSEAlgorithmIdentifier(a),
		})
	}
	return list
}

// publicKey parses a key in the form of COSE. It returns an error unless its algorithm is accepted.
func publicKey(cose []byte) (any, error) {
	const maxKey = 2048
	if len(cose) == 0 || len(cose) > maxKey {
		return nil, fmt.Errorf("it has %d bytes, and must have 1 to %d", len(cose), maxKey)
	}
	key, err := webauthncose.ParsePublicKey(cose)
	if err != nil {
		return nil, errors.New(reasonOf(err))
	}
	var kind webauthncose.PublicKeyData
	if err := webauthncbor.Unmarshal(cose, &kind); err != nil {
		return nil, fmt.Errorf("parse its algorithm: %w", err)
	}
	if !slices.Contains(Algorithms(), int(kind.Algorithm)) {
		return nil, fmt.Errorf("it has the algorithm %d (use one of %v)", kind.Algorithm, Algorithms())
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	return key, nil
}

// checkKey returns an error if a key of the library is weak, which the library does not check.
func checkKey(key any) error {
	switch k := key.(type) {
	case webauthncose.OKPPublicKeyData:
		return publickey.Check(ed25519.PublicKey(k.XCoord))
	case webauthncose.EC2PublicKeyData:
		public, err := k.ToECDSA()
		if err != nil {
			return errors.New(reasonOf(err))
		}
		return publickey.Check(public)
	case webauthncose.RSAPublicKeyData:
		e, err := webauthncose.ParseRSAPublicKeyDataExponent(&k)
		if err != nil {
			return errors.New(reasonOf(err))
		}
		return publickey.Check(&rsa.PublicKey{N: new(big.Int).SetBytes(k.Modulus), E: e})
	}
	return publickey.Check(nil)
}

// reasonOf returns the text of an error with the details that the library leaves out of it.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*protocol.Error](err); ok && e.DevInfo != "" {
		return fmt.Sprintf("%s (%.300s)", e.Details, e.DevInfo)
	}
	return fmt.Sprintf("%.300s", err.Error())
}
