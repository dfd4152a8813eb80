package ledger

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
)

// testNow is when the tests' attestations are received: within the validity
// of the certificates in testdata.
const testNow = Time(1_796_000_000_000) // 2026-11-30T00:53:20Z

// testCommit is what the statements in testdata speak of.
const testCommit = "adbc8813901bba65827259daa8e22ff94ec1f30e"

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// wantCode fails the test unless err is an *Error of the given code; an empty
// code stands for no error.
func wantCode(t *testing.T, err error, want Code) {
	t.Helper()
	fault, ok := errors.AsType[*Error](err)
	switch {
	case err == nil && want == "":
	case err == nil:
		t.Errorf("no error, want %s", want)
	case !ok:
		t.Errorf("got %v (%T), want an *Error %s", err, err, want)
	case fault.Code != want:
		t.Errorf("got %s (%v), want %s", fault.Code, err, want)
	}
}

// wantField fails the test unless err is about the given field.
func wantField(t *testing.T, err error, want string) {
	t.Helper()
	fault, ok := errors.AsType[*Error](err)
	if !ok {
		t.Errorf("got %v, want an *Error about %s", err, want)
		return
	}
	if len(fault.Fields) != 1 || fault.Fields[0].Field != want {
		t.Errorf("got %v (fields %v), want it to be about %s", err, fault.Fields, want)
	}
}

func cosignFile(name string) []byte {
	return must(os.ReadFile(filepath.Join("..", "testdata", "cosign", name)))
}

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func publicPEM(pub crypto.PublicKey) string {
	return pemOf("PUBLIC KEY", must(x509.MarshalPKIXPublicKey(pub)))
}

func certPEM(cert *x509.Certificate) string { return pemOf("CERTIFICATE", cert.Raw) }

func newP256() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

// registered returns the identity that the ledger would hold for n.
func registered(id string, n NewIdentity) Identity {
	identity := must(n.Identity())
	identity.ID, identity.Org, identity.CreatedAt = id, "acme", testNow
	return identity
}

// keyIdentity registers a bare key of cn=ci,ou=build,o=acme.
func keyIdentity(pub crypto.PublicKey) Identity {
	return registered("idn_key", NewIdentity{Kind: KeyIdentity, PEM: publicPEM(pub), DN: "cn=ci,ou=build,o=acme", Email: "ci@acme.example"})
}

// certIdentity registers a signer's certificate.
func certIdentity(cert *x509.Certificate) Identity {
	return registered("idn_cert", NewIdentity{Kind: KeyIdentity, PEM: certPEM(cert)})
}

func rootIdentity(cert *x509.Certificate) Identity {
	return registered("idn_root", NewIdentity{Kind: RootIdentity, PEM: certPEM(cert)})
}

func revoked(id Identity) Identity {
	id.RevokedAt = testNow - 1
	return id
}

func keyringOf(ids ...Identity) *Keyring { return must(NewKeyring(ids)) }

// A testCA is an authority, or a signer, with its certificate.
type testCA struct {
	key  crypto.Signer
	cert *x509.Certificate
}

// newCert returns a certificate that issuer signed, nil meaning itself. It is
// valid for a day before and after testNow; change may make it otherwise.
func newCert(issuer *testCA, subject pkix.Name, key crypto.Signer, change func(*x509.Certificate)) *testCA {
	template := &x509.Certificate{
		SerialNumber:          must(rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))),
		Subject:               subject,
		NotBefore:             testNow.Std().Add(-24 * time.Hour),
		NotAfter:              testNow.Std().Add(24 * time.Hour),
		BasicConstraintsValid: true,
	}
	change(template)
	parent := &testCA{key, template}
	if issuer != nil {
		parent = issuer
	}
	der := must(x509.CreateCertificate(rand.Reader, template, parent.cert, key.Public(), parent.key))
	return &testCA{key, must(x509.ParseCertificate(der))}
}

func asCA(c *x509.Certificate) {
	c.IsCA = true
	c.KeyUsage = x509.KeyUsageCertSign
}

func asSigner(c *x509.Certificate) {
	c.KeyUsage = x509.KeyUsageDigitalSignature
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}
	c.EmailAddresses = []string{"ci@acme.example"}
}

func newRoot() *testCA {
	return newCert(nil, pkix.Name{CommonName: "acme root", Organization: []string{"acme"}}, newP256(), asCA)
}

// ciName is the subject of cn=ci,ou=build,o=acme.
func ciName() pkix.Name {
	return pkix.Name{CommonName: "ci", OrganizationalUnit: []string{"build"}, Organization: []string{"acme"}}
}

// passed is a statement that test:go passed for testCommit.
func passed() []byte {
	return []byte(`{"_type":"https://in-toto.io/Statement/v1",` +
		`"subject":[{"name":"git+https://git.example/acme/cobra","digest":{"gitCommit":"` + testCommit + `"}}],` +
		`"predicateType":"https://github.com/ledgerd/ledgerd/predicate/result/v1",` +
		`"predicate":{"predicate":"test:go","result":{"status":"pass","duration_ms":1234},` +
		`"startedOn":"2026-11-30T00:53:18.000Z","finishedOn":"2026-11-30T00:53:19.234Z"}}`)
}

// dsseOf returns a DSSE envelope, as cosign writes a bare one.
func dsseOf(payload, sig []byte) []byte {
	type signature struct {
		Sig []byte `json:"sig"`
	}
	return must(json.Marshal(struct {
		Payload     []byte      `json:"payload"`
		PayloadType string      `json:"payloadType"`
		Signatures  []signature `json:"signatures"`
	}{payload, "application/vnd.in-toto+json", []signature{{sig}}}))
}

// publicKeyIn returns the key of a PEM block, and the certificate if it is one.
func publicKeyIn(text string) (crypto.PublicKey, *x509.Certificate) {
	block, _ := pem.Decode([]byte(text))
	if block.Type == "CERTIFICATE" {
		cert := must(x509.ParseCertificate(block.Bytes))
		return cert.PublicKey, cert
	}
	return must(x509.ParsePKIXPublicKey(block.Bytes)), nil
}

// oidEmailAddress is the subject's attribute emailAddress (RFC 2985).
var oidEmailAddress = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}

// cosignOrg trusts the key and the root that the envelopes in testdata were
// signed with.
func cosignOrg() *Keyring {
	return keyringOf(
		registered("idn_p256", NewIdentity{Kind: KeyIdentity, PEM: string(cosignFile("p256.pub")), DN: "cn=dev,ou=web,o=acme", Email: "dev@acme.example"}),
		registered("idn_root", NewIdentity{Kind: RootIdentity, PEM: string(cosignFile("ca.crt"))}),
	)
}
