// Package passkeytest has a device with a passkey, for tests: it signs what browsers and
// authenticators sign.
package passkeytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-webauthn/webauthn/protocol/webauthncbor"

	"github.com/ledgerd/ledgerd/ledger/passkey"
)

// The flags of authenticator data (Web Authentication, 6.1).
const (
	Present  = 1 << 0
	Verified = 1 << 2
	attested = 1 << 6
)

// A Device has one passkey, and a browser with a page. Fields can be changed to deceive.
type Device struct {
	RPID, Origin string
	// Flags are those of the authenticator data.
	Flags byte
	// Client has members of the client data that are set otherwise, or in addition.
	Client map[string]any
	ID     []byte
	Key    *ecdsa.PrivateKey
	// COSE is the public key in the form of COSE; nil for that of Key.
	COSE []byte
}

// New returns a device for the domain and the origin of a party, which verifies its user.
func New(t testing.TB, p passkey.Party) *Device {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id := make([]byte, 32)
	rand.Read(id)
	return &Device{RPID: p.ID, Origin: p.Origin, Flags: Present | Verified, ID: id, Key: key}
}

// Enrol returns the request to enrol the passkey, for a challenge.
func (d *Device) Enrol(t testing.TB, name string, challenge []byte) passkey.NewPasskey {
	t.Helper()
	data := d.data(d.Flags | attested)
	data = append(data, make([]byte, 16)...) // of no known kind of device
	data = binary.BigEndian.AppendUint16(data, uint16(len(d.ID)))
	data = slices.Concat(data, d.ID, d.PublicKey(t))
	object, err := webauthncbor.Marshal(map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": data})
	if err != nil {
		t.Fatal(err)
	}
	return passkey.NewPasskey{
		Name: name, CredentialID: d.ID, ClientData: d.client(t, "webauthn.create", challenge), AttestationObject: object,
	}
}

// Confirm returns what a browser returns when the passkey confirms a statement.
func (d *Device) Confirm(t testing.TB, payload []byte) passkey.Confirmation {
	t.Helper()
	challenge := passkey.Challenge(payload)
	c := passkey.Confirmation{
		CredentialID: d.ID, ClientData: d.client(t, "webauthn.get", challenge[:]), AuthenticatorData: d.data(d.Flags),
	}
	client := sha256.Sum256(c.ClientData)
	digest := sha256.Sum256(append(slices.Clone(c.AuthenticatorData), client[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, d.Key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	c.Signature = signature
	return c
}

// PublicKey returns the key in the form of COSE (RFC 9053, 7.1.1).
func (d *Device) PublicKey(t testing.TB) []byte {
	t.Helper()
	if d.COSE != nil {
		return d.COSE
	}
	point, err := d.Key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		t.Fatal(err)
	}
	const es256, ec2, p256 = -7, 2, 1
	key, err := webauthncbor.Marshal(map[int]any{1: ec2, 3: es256, -1: p256, -2: point[1:33], -3: point[33:]})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (d *Device) data(flags byte) []byte {
	rp := sha256.Sum256([]byte(d.RPID))
	return append(rp[:], flags, 0, 0, 0, 0)
}

func (d *Device) client(t testing.TB, ceremony string, challenge []byte) []byte {
	t.Helper()
	data := map[string]any{
		"type": ceremony, "challenge": base64.RawURLEncoding.EncodeToString(challenge), "origin": d.Origin,
		"crossOrigin": false,
	}
	for name, value := range d.Client {
		data[name] = value
	}
	text, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
