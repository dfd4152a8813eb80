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
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		NotBefore:    time.Now().Add(-365 * 24 * time.Hour),
		NotAfter:     expires,
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:         true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	check(t, err)

	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	check(t, os.WriteFile(f.Cert, certificate, 0o600))
	check(t, os.WriteFile(f.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	if roots != nil {
		roots.AppendCertsFromPEM(certificate)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
