package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// MaxRequest is the maximum size of a certificate signing request as PEM, in bytes.
const MaxRequest = 8 << 10

// ParseRequest returns the key in a certificate signing request. The signature of the request
// proves that the sender has the private key. Nothing else of it is used: neither its subject nor
// its extensions. Errors are about the field csr.
func ParseRequest(csr string) (*ecdsa.PublicKey, error) {
	if len(csr) > MaxRequest {
		return nil, refuse("too long: at most %d bytes", MaxRequest)
	}
	block, rest := pem.Decode([]byte(csr))
	if block == nil || block.Type != "CERTIFICATE REQUEST" || strings.TrimSpace(string(rest)) != "" {
		return nil, refuse("not one certificate signing request in PEM (it begins with -----BEGIN CERTIFICATE REQUEST-----)")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, refuse("cannot parse the certificate signing request: %v", err)
	}

	// Before the signature: other keys can be very slow to verify.
	key, ok := request.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, refuse("the key is not an ECDSA key on P-256")
	}
	if err := request.CheckSignature(); err != nil {
		return nil, refuse("the signature is not of the key in the request: %v", err)
	}
	return key, nil
}

func refuse(format string, args ...any) error {
	return ledger.FieldErrorf(ledger.CodeInvalidField, "csr", format, args...)
}
