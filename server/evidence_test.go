package server

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// about returns a subject for a commit.
func about(n int) string { return fmt.Sprintf(`{"name":"x","digest":{"gitCommit":%q}}`, commitID(n)) }

// own returns a predicate of the ledger's own type.
func own(predicate string, status ledger.Status, members string) string {
	return fmt.Sprintf(`{"predicate":%q,"result":{"status":%q,"duration_ms":1}%s}`, predicate, status, members)
}

// issued returns a signer's key and certificate for a DN, issued by the CA of the fixtures.
func (b *backend) issued(key crypto.Signer, cn, ou string) func(payload []byte) []byte {
	b.t.Helper()
	caKey, ca := cosignAuthority(b.t)
	now := b.clock.now()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: cn, OrganizationalUnit: []string{ou}, Organization: []string{"acme"}},
		NotBefore:    now.Add(-time.Hour), NotAfter: now.Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}, ca, key.Public(), caKey)
	must.OK(b.t, err)
	cert := must.Get(x509.ParseCertificate(der))(b.t)
	return func(payload []byte) []byte {
		return must.Get(attestation.SignBundle(key, []*x509.Certificate{cert}, payload))(b.t)
	}
}
