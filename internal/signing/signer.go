// Package signing has keys with their certificates, and signs statements with them.
package signing

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// A Signer signs statements: with a certificate as a Sigstore bundle, which
// says whose the key is, else as a DSSE envelope.
type Signer struct {
	key   crypto.Signer
	chain []*x509.Certificate // the leaf first; nil where there is none
}

// Load reads a private key, and the certificate where one is named.
func Load(keyFile, certFile string) (*Signer, error) {
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	if encrypted := encryptedKey(string(text)); encrypted != "" {
		return nil, fmt.Errorf("%s: %s", keyFile, encrypted)
	}
	s := &Signer{}
	if s.key, err = identity.ParsePrivateKey(text); err != nil {
		return nil, fmt.Errorf("%s: %w", keyFile, err)
	}
	if certFile == "" {
		return s, nil
	}
	if text, err = os.ReadFile(certFile); err != nil {
		return nil, err
	}
	if s.chain, err = identity.ParseCertificates(text); err != nil {
		return nil, fmt.Errorf("%s: %w", certFile, err)
	}
	public, ok := s.key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(s.chain[0].PublicKey) {
		return nil, fmt.Errorf("%s is not the certificate of the key in %s", certFile, keyFile)
	}
	return s, nil
}

// encryptedKey tells what to do about a private key that a passphrase guards.
func encryptedKey(text string) string {
	switch {
	case strings.Contains(text, "BEGIN ENCRYPTED SIGSTORE PRIVATE KEY"),
		strings.Contains(text, "BEGIN ENCRYPTED COSIGN PRIVATE KEY"):
		return "keys that cosign encrypted are not supported: sign with cosign and post what it wrote with --envelope, " +
			"or make a key with 'ledgerd keygen'"
	case strings.Contains(text, "BEGIN ENCRYPTED PRIVATE KEY"), strings.Contains(text, "Proc-Type: 4,ENCRYPTED"):
		return "private keys with a passphrase are not supported: decrypt it with 'openssl pkcs8', or make one with " +
			"'ledgerd keygen'"
	}
	return ""
}

// Sign returns the statement in an envelope.
func (s *Signer) Sign(statement []byte) ([]byte, error) {
	if s.chain != nil {
		return attestation.SignBundle(s.key, s.chain, statement)
	}
	return attestation.SignDSSE(s.key, statement)
}

// CheckTrusted reports that the identities are clearly not to take what the Signer
// signs. Whoever records decides: what cannot be told here is no error.
func (s *Signer) CheckTrusted(identities []identity.Identity, commit string) error {
	statement, err := attestation.NewStatement("", commit, attestation.ResultPredicate{
		Predicate: "probe", Result: ledger.Result{Status: ledger.Skip},
	})
	if err != nil {
		return err
	}
	envelope, err := s.Sign(statement)
	if err != nil {
		return err
	}
	keys, err := identity.NewKeyring(identities)
	if err != nil {
		return nil // a newer server may know kinds that we do not
	}
	_, err = attestation.Verify(envelope, keys, ledger.TimeOf(time.Now()))
	e, ok := errors.AsType[*ledger.Error](err)
	if ok && (e.Code == ledger.CodeUntrustedIdentity || e.Code == ledger.CodeRevokedIdentity) {
		return fmt.Errorf("what this key signs would be refused: %w", err)
	}
	return nil
}

// CheckStatement reports why the ledger would not understand a statement. It takes
// the ledger's own way: that of a signed one whose key is known.
func (s *Signer) CheckStatement(statement []byte) error {
	der, err := x509.MarshalPKIXPublicKey(s.key.Public())
	if err != nil {
		return err
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	keys, err := identity.NewKeyring(
		[]identity.Identity{{Kind: identity.KeyIdentity, DN: "cn=signer", PEM: string(public)}})
	if err != nil {
		return err
	}
	envelope, err := attestation.SignDSSE(s.key, statement)
	if err != nil {
		return err
	}
	_, err = attestation.Verify(envelope, keys, ledger.TimeOf(time.Now()))
	return err
}
