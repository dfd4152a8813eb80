package ca

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"

	"github.com/ledgerd/ledgerd/ledger"
)

// NewRoot returns the self-signed certificate of a CA of an org. The CA certifies no other CA, and
// only keys that sign code.
func NewRoot(
	p Purpose, org string, serial *big.Int, key *ecdsa.PrivateKey, now ledger.Time,
) (*x509.Certificate, error) {
	name := org + " " + p.title() + " " + SerialText(serial)[:8]
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name, Organization: []string{org}},
		NotBefore:             seconds(now.Add(-skew)),
		NotAfter:              seconds(now.Add(RootLifetime)),
		KeyUsage:              x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	return parse(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
}
