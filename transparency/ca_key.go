package transparency

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// caPurpose begins what the key of a CA is derived for.
const caPurpose = "ledgerd/ca-key/v1\x00"

// caFile returns the path of the key of a CA whose certificate has a serial number.
func (k *Keys) caFile(serial string) string { return filepath.Join(k.folder, "ca-"+serial+".key") }

// NewCAKey returns a key for the CA whose certificate will have a serial number. With a seed it is
// derived, so that all servers with the database have it.
func (k *Keys) NewCAKey(serial string) (*ecdsa.PrivateKey, error) {
	if k.seed != nil {
		return k.seed.caKey(serial)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of a CA: %w", err)
	}
	return private, nil
}

// SaveCAKey writes a key of NewCAKey to the folder of the keys, before the CA is in use. With a
// seed it is a no-op.
func (k *Keys) SaveCAKey(serial string, key *ecdsa.PrivateKey) error {
	if k.seed != nil {
		return nil
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("write the key of a CA: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: pemPrivateKey, Bytes: secret})
	if err := write(k.caFile(serial), text); err != nil {
		return fmt.Errorf("write the key of a CA: %w (make log.key_dir writable, or create a seed in it with "+
			"'ledgerd log new-seed')", err)
	}
	return nil
}

// LoadCAKey returns the key of a CA, from its file or else from the seed. It returns an error if
// that is not the key in the certificate.
func (k *Keys) LoadCAKey(cert *x509.Certificate) (*ecdsa.PrivateKey, error) {
	private, source, err := k.loadCAKey(ca.SerialText(cert.SerialNumber))
	if err != nil {
		return nil, err
	}
	if !private.PublicKey.Equal(cert.PublicKey) {
		return nil, fmt.Errorf("%s is not the key of the CA %s (bring it back, or rotate the CA)", source,
			cert.Subject.CommonName)
	}
	return private, nil
}

// CheckCAKey returns an error if a server with these folders does not have the key of a CA. The
// certificate is PEM. It creates nothing.
func CheckCAKey(folder, state, certificate string) error {
	chain, err := identity.ParseCertificates([]byte(certificate))
	if err != nil {
		return fmt.Errorf("read the certificate of the CA: %w", err)
	}
	seed, err := readSeed(folder)
	if err != nil {
		return err
	}
	_, err = (&Keys{folder, state, seed}).LoadCAKey(chain[0])
	return err
}

// loadCAKey also returns where the key is from, for people.
func (k *Keys) loadCAKey(serial string) (private *ecdsa.PrivateKey, source string, err error) {
	file := k.caFile(serial)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && k.seed != nil {
		private, err = k.seed.caKey(serial)
		return private, "what the seed in log.key_dir gives", err
	}
	if err == nil && k.folder != k.state {
		err = checkSecret(file)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read the key of the CA: %w", err)
	}
	if private, err = parseP256Key(text); err != nil {
		return nil, "", fmt.Errorf("read the key of the CA %s: %w", file, err)
	}
	return private, file, nil
}

// caKey derives the key of a CA. The first bytes that are a scalar of the curve are used, which
// are almost always those with the number 0.
func (s seed) caKey(serial string) (*ecdsa.PrivateKey, error) {
	for n := range byte(255) {
		scalar, err := hkdf.Key(sha256.New, s, nil, caPurpose+serial+"\x00"+string([]byte{n}), 32)
		if err != nil {
			return nil, fmt.Errorf("derive the key of a CA: %w", err)
		}
		if private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar); err == nil {
			return private, nil
		}
	}
	return nil, errors.New("derive the key of a CA: no number of 255 gives a key")
}
