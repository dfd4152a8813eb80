// Package ledgertest provides keys, certificates, identities and envelopes for tests of
// the packages below ledger.
package ledgertest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// Now is the time at which tests receive attestations. The certificates in testdata are
// valid then.
const Now = ledger.Time(1_796_000_000_000) // 2026-11-30T00:53:20Z

// Commit is the commit that the statements in testdata are about.
const Commit = "adbc8813901bba65827259daa8e22ff94ec1f30e"

// Must returns v. It panics if err is not nil.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// WantCode fails the test unless err is a *ledger.Error of the given code. An empty
// code means no error.
func WantCode(t *testing.T, err error, want ledger.Code) {
	t.Helper()
	fault, ok := errors.AsType[*ledger.Error](err)
	switch {
	case err == nil && want == "":
	case err == nil:
		t.Errorf("no error, want %s", want)
	case !ok:
		t.Errorf("got %v (%T), want a *ledger.Error %s", err, err, want)
	case fault.Code != want:
		t.Errorf("got %s (%v), want %s", fault.Code, err, want)
	}
}

// WantField fails the test unless err is about the given field.
func WantField(t *testing.T, err error, want string) {
	t.Helper()
	fault, ok := errors.AsType[*ledger.Error](err)
	if !ok {
		t.Errorf("got %v, want a *ledger.Error about %s", err, want)
		return
	}
	if len(fault.Fields) != 1 || fault.Fields[0].Field != want {
		t.Errorf("got %v (fields %v), want it to be about %s", err, fault.Fields, want)
	}
}

// CosignFile returns the content of a file in testdata/cosign.
func CosignFile(name string) []byte {
	return Must(os.ReadFile(filepath.Join("..", "testdata", "cosign", name)))
}

// PEM encodes a PEM block of the given type.
func PEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// PublicPEM encodes a public key in PEM.
func PublicPEM(pub crypto.PublicKey) string {
	return PEM("PUBLIC KEY", Must(x509.MarshalPKIXPublicKey(pub)))
}

// CertPEM encodes a certificate in PEM.
func CertPEM(cert *x509.Certificate) string { return PEM("CERTIFICATE", cert.Raw) }

// NewP256 generates an ECDSA key on P-256.
func NewP256() *ecdsa.PrivateKey { return Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

// Registered returns the identity that the ledger would store for n.
func Registered(id string, n identity.NewIdentity) identity.Identity {
	identity := Must(n.Identity())
	identity.ID, identity.Org, identity.CreatedAt = id, "acme", Now
	return identity
}

// KeyIdentity returns an identity for a bare key of cn=ci,ou=build,o=acme.
func KeyIdentity(pub crypto.PublicKey) identity.Identity {
	return Registered("idn_key", identity.NewIdentity{Kind: identity.KeyIdentity, PEM: PublicPEM(pub),
		DN: "cn=ci,ou=build,o=acme", Email: "ci@acme.example"})
}

// CertIdentity returns an identity for a signer's certificate.
func CertIdentity(cert *x509.Certificate) identity.Identity {
	return Registered("idn_cert", identity.NewIdentity{Kind: identity.KeyIdentity, PEM: CertPEM(cert)})
}

// RootIdentity returns an identity for a root.
func RootIdentity(cert *x509.Certificate) identity.Identity {
	return Registered("idn_root", identity.NewIdentity{Kind: identity.RootIdentity, PEM: CertPEM(cert)})
}

// Revoked returns id, revoked just before Now.
func Revoked(id identity.Identity) identity.Identity {
	id.RevokedAt = Now - 1
	return id
}

// Keyring returns a keyring with the given identities.
func Keyring(ids ...identity.Identity) *identity.Keyring { return Must(identity.NewKeyring(ids, nil)) }

// A Party is a CA or a signer: a key and its certificate.
type Party struct {
	Key  crypto.Signer
	Cert *x509.Certificate
}

// NewCert returns a certificate signed by issuer, or self-signed if issuer is nil. It is
// valid from a day before Now to a day after. The change function adjusts the template.
func NewCert(issuer *Party, subject pkix.Name, key crypto.Signer, change func(*x509.Certificate)) *Party {
	template := &x509.Certificate{
		SerialNumber:          Must(rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))),
		Subject:               subject,
		NotBefore:             Now.Std().Add(-24 * time.Hour),
		NotAfter:              Now.Std().Add(24 * time.Hour),
		BasicConstraintsValid: true,
	}
	change(template)

	parent := &Party{key, template}
	if issuer != nil {
		parent = issuer
	}
	der := Must(x509.CreateCertificate(rand.Reader, template, parent.Cert, key.Public(), parent.Key))
	return &Party{key, Must(x509.ParseCertificate(der))}
}

// AsCA turns a certificate template into that of a CA.
func AsCA(c *x509.Certificate) {
	c.IsCA = true
	c.KeyUsage = x509.KeyUsageCertSign
}

// AsSigner turns a certificate template into one for code signing.
func AsSigner(c *x509.Certificate) {
	c.KeyUsage = x509.KeyUsageDigitalSignature
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}
	c.EmailAddresses = []string{"ci@acme.example"}
}

// NewRoot returns a new root, cn=acme root,o=acme.
func NewRoot() *Party {
	return NewCert(nil, pkix.Name{CommonName: "acme root", Organization: []string{"acme"}}, NewP256(), AsCA)
}

// CIName returns the subject cn=ci,ou=build,o=acme.
func CIName() pkix.Name {
	return pkix.Name{CommonName: "ci", OrganizationalUnit: []string{"build"}, Organization: []string{"acme"}}
}

// Passed returns a statement that test:go passed for Commit.
func Passed() []byte {
	return []byte(`{"_type":"https://in-toto.io/Statement/v1",` +
		`"subject":[{"name":"git+https://git.example/acme/cobra","digest":{"gitCommit":"` + Commit + `"}}],` +
		`"predicateType":"https://github.com/ledgerd/ledgerd/predicate/result/v1",` +
		`"predicate":{"predicate":"test:go","result":{"status":"pass","duration_ms":1234},` +
		`"startedOn":"2026-11-30T00:53:18.000Z","finishedOn":"2026-11-30T00:53:19.234Z"}}`)
}

// DSSE returns a DSSE envelope in the form that cosign writes.
func DSSE(payload, sig []byte) []byte {
	type signature struct {
		Sig []byte `json:"sig"`
	}
	return Must(json.Marshal(struct {
		Payload     []byte      `json:"payload"`
		PayloadType string      `json:"payloadType"`
		Signatures  []signature `json:"signatures"`
	}{payload, "application/vnd.in-toto+json", []signature{{Sig: sig}}}))
}

// PublicKeyIn returns the public key in a PEM block, and the certificate if it has one.
func PublicKeyIn(text string) (crypto.PublicKey, *x509.Certificate) {
	block, _ := pem.Decode([]byte(text))
	if block.Type == "CERTIFICATE" {
		cert := Must(x509.ParseCertificate(block.Bytes))
		return cert.PublicKey, cert
	}
	return Must(x509.ParsePKIXPublicKey(block.Bytes)), nil
}

// OIDEmail is the OID of the subject attribute emailAddress (RFC 2985).
var OIDEmail = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}

// CosignOrg returns a keyring with the key and the root behind the envelopes in
// testdata.
func CosignOrg() *identity.Keyring {
	return Keyring(
		Registered("idn_p256", identity.NewIdentity{Kind: identity.KeyIdentity, PEM: string(CosignFile("p256.pub")),
			DN: "cn=dev,ou=web,o=acme", Email: "dev@acme.example"}),
		Registered("idn_root", identity.NewIdentity{Kind: identity.RootIdentity, PEM: string(CosignFile("ca.crt"))}),
	)
}
