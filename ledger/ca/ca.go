// Package ca is the profile of the certificates that CI jobs and people sign with, and of the CAs
// that issue them. Each org has CAs of its own.
package ca

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

const (
	// Lifetime is how long a certificate is valid.
	Lifetime = 10 * time.Minute
	// RootLifetime is how long a CA is valid.
	RootLifetime = 10 * 365 * 24 * time.Hour
	// skew is by how much certificates are valid before they are issued: another server with the
	// database may have a clock that is behind.
	skew = time.Minute
)

// NewSerial returns a random serial number of 128 bits. It is never negative or zero.
func NewSerial() *big.Int {
	var random [16]byte
	rand.Read(random[:]) // never returns an error
	serial := new(big.Int).SetBytes(random[:])
	return serial.SetBit(serial, 127, 1) // so that it always has the same length
}

// SerialText returns a serial number as it is written in events and names of files.
func SerialText(serial *big.Int) string { return fmt.Sprintf("%032x", serial) }

// PEM returns a certificate as PEM.
func PEM(cert *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
}

// parse returns the certificate that was just created.
func parse(der []byte, err error) (*x509.Certificate, error) {
	if err != nil {
		return nil, fmt.Errorf("create a certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the new certificate: %w", err)
	}
	return cert, nil
}

// seconds returns a time as certificates have it: in whole seconds.
func seconds(t ledger.Time) time.Time { return t.Std().Truncate(time.Second) }
