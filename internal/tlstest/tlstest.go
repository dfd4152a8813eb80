// Package tlstest makes certificates for tests.
package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
)

// Files are the PEM files of a certificate and its key.
type Files struct{ Cert, Key string }

// NewFiles returns files that do not exist yet.
func NewFiles(t testing.TB) Files {
	folder := t.TempDir()
	return Files{filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")}
}

// Make writes a new key and a certificate for 127.0.0.1, and adds it to roots unless that is nil.
func (f Files) Make(t testing.TB, serial int64, expires time.Time, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.OK(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		NotBefore:    time.Now().Add(-365 * 24 * time.Hour),
		NotAfter:     expires,
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:         true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must.OK(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must.OK(t, err)

	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	must.OK(t, os.WriteFile(f.Cert, certificate, 0o600))
	must.OK(t, os.WriteFile(f.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	if roots != nil {
		roots.AppendCertsFromPEM(certificate)
	}
}
