package signing

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"time"

	"github.com/ledgerd/ledgerd/internal/atomicfile"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// A KeyPair is a new key with a self-signed certificate.
type KeyPair struct {
	key         ed25519.PrivateKey
	Cert        *x509.Certificate
	Fingerprint string
}

// NewKeyPair creates an Ed25519 key and a self-signed certificate for signing code,
// which is valid for the given number of days. It refuses a DN that a ledger refuses.
func NewKeyPair(dn identity.DN, email string, now time.Time, days int) (*KeyPair, error) {
	if err := dn.CheckVisible(); err != nil {
		return nil, fmt.Errorf("invalid --dn: %w", err)
	}
	if err := identity.CheckEmail(email); err != nil {
		return nil, err
	}
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("generate a serial number: %w", err)
	}

	template := &x509.Certificate{
		SerialNumber:          serial.Add(serial, big.NewInt(1)),
		Subject:               dn.Name(),
		NotBefore:             now.Add(-5 * time.Minute), // allows for clock skew
		NotAfter:              now.AddDate(0, 0, days),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		BasicConstraintsValid: true,
	}
	if email != "" {
		template.EmailAddresses = []string{email}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		return nil, fmt.Errorf("create a certificate: %w", err)
	}

	pair := &KeyPair{key: key}
	if pair.Cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("read the new certificate: %w", err)
	}
	pair.Fingerprint, err = identity.Fingerprint(public)
	return pair, err
}

// Signer returns a Signer with the key and its certificate.
func (k *KeyPair) Signer() *Signer {
	return &Signer{key: k.key, chain: []*x509.Certificate{k.Cert}}
}

// CertPEM returns the certificate as PEM.
func (k *KeyPair) CertPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.Cert.Raw})
}

// Write writes the key to name.key and the certificate to name.crt. If one of them
// fails, neither remains. With force it replaces existing files, once both new files
// are on disk; without it, existing files are an error.
func (k *KeyPair) Write(name string, force bool) error {
	der, err := x509.MarshalPKCS8PrivateKey(k.key)
	if err != nil {
		return fmt.Errorf("write the key: %w", err)
	}
	key, cert := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), k.CertPEM()
	if force {
		return replacePair(name, key, cert)
	}
	for _, file := range []string{name + ".key", name + ".crt"} {
		if _, err := os.Lstat(file); err == nil {
			return fmt.Errorf("%s already exists (use --force to overwrite)", file)
		}
	}
	return writePair(name, key, cert)
}

// writePair creates the two files, which must not exist.
func writePair(name string, key, cert []byte) error {
	if err := writeNew(name+".crt", cert, 0o644); err != nil {
		return err
	}
	if err := writeNew(name+".key", key, 0o600); err != nil {
		return errors.Join(err, os.Remove(name+".crt"))
	}
	return atomicfile.SyncFolder(name)
}

// writeNew creates a file, which must not exist, and syncs its content to disk.
func writeNew(name string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// replacePair writes both files under temporary names and then renames them. The key
// comes last, since the old key is the one that cannot be restored.
func replacePair(name string, key, cert []byte) error {
	newKey, err := atomicfile.Create(name+".key", 0o600)
	if err != nil {
		return err
	}
	defer newKey.Discard()
	newCert, err := atomicfile.Create(name+".crt", 0o644)
	if err != nil {
		return err
	}
	defer newCert.Discard()
	if err := errors.Join(newCert.Fill(cert), newKey.Fill(key)); err != nil {
		return err
	}
	if err := newCert.Rename(); err != nil {
		return err
	}
	return newKey.Rename()
}
