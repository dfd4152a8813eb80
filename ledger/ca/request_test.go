package ca_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ca"
)

// request returns a certificate signing request as DER, with a subject and a name that no
// certificate gets.
func request(t testing.TB, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "alice", Organization: []string{"acme"}}, DNSNames: []string{"acme.example"},
	}, key)
	must.OK(t, err)
	return der
}

func asPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func TestRequestGivesItsKeyAndNothingElse(t *testing.T) {
	key := newKey(t)
	got := must.Get(ca.ParseRequest(asPEM("CERTIFICATE REQUEST", request(t, key))))(t)
	if !key.PublicKey.Equal(got) {
		t.Error("the key is another one")
	}
	full := asPEM("CERTIFICATE REQUEST", request(t, key))
	full += strings.Repeat("\n", ca.MaxRequest-len(full))
	if _, err := ca.ParseRequest(full); err != nil {
		t.Errorf("a request of the maximum size: %v", err)
	}
}

func TestRequestsAreRefused(t *testing.T) {
	key := newKey(t)
	good := request(t, key)
	p384 := must.Get(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))(t)
	rsaKey := must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	must.OK(t, err)
	// The last byte is of the signature.
	forged := append([]byte(nil), good...)
	forged[len(forged)-1] ^= 1
	text := asPEM("CERTIFICATE REQUEST", good)
	otherSubject := bytes.Replace(good, []byte("alice"), []byte("alicf"), 1)
	point, err := key.PublicKey.Bytes()
	must.OK(t, err)
	offCurve := append([]byte(nil), good...)
	offCurve[bytes.Index(good, point)+len(point)-1] ^= 1

	for _, tc := range []struct{ name, csr, want string }{
		{"empty", "", "not one certificate signing request"},
		{"no PEM", "text", "not one certificate signing request"},
		{"of another type", asPEM("CERTIFICATE", good), "not one certificate signing request"},
		{"two", text + text, "not one certificate signing request"},
		{"no DER", asPEM("CERTIFICATE REQUEST", []byte("x")), "cannot parse"},
		{"on P-384", asPEM("CERTIFICATE REQUEST", request(t, p384)), "not an ECDSA key on P-256"},
		{"RSA", asPEM("CERTIFICATE REQUEST", request(t, rsaKey)), "not an ECDSA key on P-256"},
		{"Ed25519", asPEM("CERTIFICATE REQUEST", request(t, edKey)), "not an ECDSA key on P-256"},
		{"with more bytes", asPEM("CERTIFICATE REQUEST", append(good, 0)), "trailing data"},
		{"with a point that is not on the curve", asPEM("CERTIFICATE REQUEST", offCurve), "not on curve"},
		{"signed over another subject", asPEM("CERTIFICATE REQUEST", otherSubject), "the signature is not"},
		{"signed by another key", asPEM("CERTIFICATE REQUEST", forged), "the signature is not"},
		{"too long", text + strings.Repeat("\n", ca.MaxRequest+1-len(text)), "too long"},
	} {
		_, err := ca.ParseRequest(tc.csr)
		if codeOf(err) != ledger.CodeInvalidField || !strings.Contains(err.Error(), tc.want) ||
			!strings.HasPrefix(err.Error(), "invalid csr:") {
			t.Errorf("%s: %v, want an error about csr with %q", tc.name, err, tc.want)
		}
	}
}
