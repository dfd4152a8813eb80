// Package signing creates and loads signing keys with their certificates, and signs
// statements.
package signing

import (
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/identity/sshkey"
)

// A Signer signs statements. With a certificate, which names the signer, it creates
// Sigstore bundles, otherwise DSSE envelopes.
type Signer struct {
	key   crypto.Signer
	chain []*x509.Certificate // leaf first; nil without a certificate
}

// Load returns a Signer with the private key in keyFile. If that is a public key, ssh-agent has the
// private one. If certFile is not empty, it holds the certificate of the key and optionally its chain.
// passphrase, unless it is nil, asks for the passphrase of an encrypted key.
func Load(keyFile, certFile string, passphrase func() ([]byte, error)) (*Signer, error) {
	text, err := readText(keyFile)
	if err != nil {
		return nil, err
	}
	s := &Signer{}
	if s.key, err = parseKey(text, passphrase); err != nil {
		return nil, fmt.Errorf("%s: %w", keyFile, err)
	}
	if certFile == "" {
		return s, nil
	}

	if text, err = readText(certFile); err != nil {
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

// readText reads a file without its byte order mark.
func readText(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if text, err = ledger.UTF8(text); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return text, nil
}

// parseKey returns the private key in a text, or the one in ssh-agent whose public key is in it.
func parseKey(text []byte, passphrase func() ([]byte, error)) (crypto.Signer, error) {
	if refused := unreadable(string(text)); refused != "" {
		return nil, errors.New(refused)
	}
	public, err := publicKey(string(text))
	if err != nil {
		return nil, err
	}
	if public != nil {
		return newAgentKey(public, os.Getenv("SSH_AUTH_SOCK"), agentTimeout)
	}
	return identity.ParsePrivateKey(text, passphrase)
}

// publicKey returns the public key in a text, or nil if it has none or a private key, too.
func publicKey(text string) (crypto.PublicKey, error) {
	if strings.Contains(text, "PRIVATE KEY-----") {
		return nil, nil
	}
	if strings.Contains(text, "BEGIN PUBLIC KEY") {
		return identity.Identity{PEM: text}.PublicKey()
	}
	if strings.Contains(text, "-----BEGIN ") {
		return nil, nil
	}
	keys, err := sshkey.ParsePublic(text)
	switch {
	case err != nil || len(keys) == 0:
		return nil, err
	case len(keys) > 1:
		return nil, fmt.Errorf("it has %d SSH keys, and signing takes one (put it into a file of its own)", len(keys))
	}
	return keys[0], nil
}

// unreadable returns an error message with advice if a private key is encrypted or in a form that cannot be
// read, or else "".
func unreadable(text string) string {
	switch {
	case strings.Contains(text, "PuTTY-User-Key-File"):
		return "keys of PuTTY are not supported: export it as an OpenSSH key with puttygen"
	case strings.Contains(text, "BEGIN ENCRYPTED SIGSTORE PRIVATE KEY"),
		strings.Contains(text, "BEGIN ENCRYPTED COSIGN PRIVATE KEY"):
		return "encrypted cosign keys are not supported: sign with cosign and record its bundle with --envelope, " +
			"or create a key with 'ledgerd keygen'"
	case strings.Contains(text, "BEGIN ENCRYPTED PRIVATE KEY"), strings.Contains(text, "Proc-Type: 4,ENCRYPTED"):
		return "encrypted private keys are not supported: decrypt the key with 'openssl pkcs8', or create one with " +
			"'ledgerd keygen'"
	}
	return ""
}

// Sign returns the signed statement, as a Sigstore bundle or a DSSE envelope.
func (s *Signer) Sign(statement []byte) ([]byte, error) {
	if s.chain != nil {
		return attestation.SignBundle(s.key, s.chain, statement)
	}
	return attestation.SignDSSE(s.key, statement)
}

// CheckTrusted returns an error if none of the identities trusts the Signer, or if the
// one that does is revoked. Other failures are not errors: the server decides.
func (s *Signer) CheckTrusted(identities []identity.Identity, commit string) error {
	_, err := s.Name(identities, commit, "probe")
	return err
}

// Name returns the DN that the identities give the Signer of a predicate, and the error of
// CheckTrusted. The DN is zero if it is not known.
func (s *Signer) Name(identities []identity.Identity, commit, predicate string) (name identity.DN, err error) {
	keys, err := identity.NewKeyring(identities, nil)
	if err != nil {
		return name, nil // a newer server may have kinds of identities that are unknown here
	}
	signer, err := s.identify(keys, commit, predicate)
	if e, ok := errors.AsType[*ledger.Error](err); ok {
		if e.Code != ledger.CodeUntrustedIdentity && e.Code != ledger.CodeRevokedIdentity {
			return name, nil
		}
		err = fmt.Errorf("signatures of this key would be refused: %w", err)
	}
	return signer.DN, err
}

// identify returns the signer in the keyring. A certificate is verified with a test signature, except
// if its key is in ssh-agent, which may ask its user to confirm each one: the signer is then zero.
func (s *Signer) identify(keys *identity.Keyring, commit, predicate string) (signer identity.Signer, err error) {
	if s.chain == nil {
		vouchers, err := keys.Holders(s.key.Public(), time.Now())
		if err != nil {
			return signer, err
		}
		return vouchers.Signer(predicate, commit)
	}
	if _, ok := s.key.(*agentKey); ok {
		return signer, nil
	}

	statement, err := attestation.NewStatement("", commit, attestation.ResultPredicate{
		Predicate: predicate, Result: ledger.Result{Status: ledger.Skip},
	})
	if err != nil {
		return signer, err
	}
	bundle, err := s.Sign(statement)
	if err != nil {
		return signer, err
	}
	a, err := attestation.Verify(bundle, keys, ledger.TimeOf(time.Now()))
	if err != nil {
		return signer, err
	}
	return a.Signer, nil
}

// CheckStatement returns the commit that a statement is about, or an error if the ledger would
// refuse it as invalid. It signs the statement with a new key and verifies it like the ledger, with a
// keyring that trusts this key. The commit is "" if only the ledger knows it, by the web URL of the repo.
func CheckStatement(statement []byte) (commit string, err error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return "", err
	}
	public, err := identity.PublicPEM(key.Public())
	if err != nil {
		return "", err
	}
	keys, err := identity.NewKeyring([]identity.Identity{{Kind: identity.KeyIdentity, DN: "cn=signer", PEM: public}}, nil)
	if err != nil {
		return "", err
	}

	envelope, err := attestation.SignDSSE(key, statement)
	if err != nil {
		return "", err
	}
	a, err := attestation.Verify(envelope, keys, ledger.TimeOf(time.Now()))
	switch {
	case attestation.IsCommitPlaced(statement) && (err == nil || isAboutCommits(err)):
		return "", nil
	case err != nil:
		return "", err
	}
	return a.Commit, a.CheckNew()
}

// isAboutCommits reports whether an error says that a statement names no commit or several.
func isAboutCommits(err error) bool {
	e, ok := errors.AsType[*ledger.Error](err)
	return ok && (e.Code == ledger.CodeNoCommitSubject || e.Code == ledger.CodeSeveralCommits)
}
