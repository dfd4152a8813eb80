package signing

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/identity"
)

// An EphemeralKey is a new P-256 key that is never written to disk.
type EphemeralKey struct{ key *ecdsa.PrivateKey }

// NewEphemeralKey creates a key.
func NewEphemeralKey() (*EphemeralKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
	}
	return &EphemeralKey{key}, nil
}

// Request returns a certificate signing request for the key as PEM. It has no name: the server
// decides which name it certifies.
func (k *EphemeralKey) Request() (string, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, k.key)
	if err != nil {
		return "", fmt.Errorf("request a certificate: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), nil
}

// Signer returns a Signer with the key and a certificate as PEM.
func (k *EphemeralKey) Signer(certificate string) (*Signer, error) {
	chain, err := identity.ParseCertificates([]byte(certificate))
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the job: %w", err)
	}
	if !k.key.PublicKey.Equal(chain[0].PublicKey) {
		return nil, errors.New("the certificate of the job is for another key")
	}
	return &Signer{key: k.key, chain: chain}, nil
}
