package ca

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// Claims are what a certificate says of the OIDC token for which it was issued.
type Claims struct {
	// Issuer is the URL of the token's issuer.
	Issuer string `asn1:"utf8"`
	// Digest is the digest of all claims of the token, such as sha256:2cf2…, as in the event of the
	// certificate.
	Digest string `asn1:"utf8"`
}

// oidClaims is the OID of the extension with the Claims, which are its DER. Its arc is 2.25, for
// which no registration is needed. The number is no UUID: many parsers, including that of Go,
// refuse arcs of more than 31 bits. The next number, 2, is that of package identity. See
// docs/identities.md.
var oidClaims = asn1.ObjectIdentifier{2, 25, 1515595488, 1}

// ClaimsOf returns what a certificate says of the token for which it was issued. It reports false
// if the certificate has no such extension.
func ClaimsOf(cert *x509.Certificate) (c Claims, ok bool, err error) {
	for _, e := range cert.Extensions {
		if !e.Id.Equal(oidClaims) {
			continue
		}
		rest, err := asn1.Unmarshal(e.Value, &c)
		if err == nil && len(rest) > 0 {
			err = errors.New("it is more than an issuer and a digest")
		}
		if err != nil {
			return Claims{}, true, fmt.Errorf("read the claims of the certificate: %w", err)
		}
		return c, true, nil
	}
	return c, false, nil
}

// A Leaf is what a certificate says.
type Leaf struct {
	Purpose Purpose
	DN      identity.DN
	Key     *ecdsa.PublicKey
	// Claims are those of the token of a CI job.
	Claims Claims
	// Payload is the SHA-256 of the one payload that a person may sign.
	Payload [sha256.Size]byte
}

// Issue returns a certificate of the CA for a leaf, with a new serial number. It refuses names
// that are not for the purpose, and returns CodeExpiredCertificate if the certificate would outlive
// the CA.
func (l Leaf) Issue(root *x509.Certificate, key *ecdsa.PrivateKey, now ledger.Time) (*x509.Certificate, error) {
	if err := l.Purpose.CheckDN(l.DN); err != nil {
		return nil, fmt.Errorf("issue a certificate: %w", err)
	}
	until := seconds(now.Add(Lifetime))
	if until.After(root.NotAfter) {
		return nil, ledger.Errorf(ledger.CodeExpiredCertificate,
			"the CA expires at %s, before a new certificate would (replace it with 'ledgerd identity %s rotate')",
			ledger.TimeOf(root.NotAfter), l.Purpose.Name())
	}
	extension, err := l.extension()
	if err != nil {
		return nil, err
	}

	template := &x509.Certificate{
		SerialNumber:          NewSerial(),
		Subject:               l.DN.Name(),
		NotBefore:             seconds(now.Add(-skew)),
		NotAfter:              until,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		BasicConstraintsValid: true, // and CA:FALSE
		ExtraExtensions:       []pkix.Extension{extension},
	}
	return parse(x509.CreateCertificate(rand.Reader, template, root, l.Key, key))
}

// extension returns what the certificate says in addition to the name and the key.
func (l Leaf) extension() (pkix.Extension, error) {
	if l.Purpose == People {
		return identity.ForPayload(l.Payload)
	}
	claims, err := asn1.Marshal(l.Claims)
	if err != nil {
		return pkix.Extension{}, fmt.Errorf("encode the claims of a certificate: %w", err)
	}
	return pkix.Extension{Id: oidClaims, Value: claims}, nil
}
