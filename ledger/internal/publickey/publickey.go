// Package publickey decides which public keys are accepted, wherever one is read: of signers and CAs,
// issuers of tokens, passkeys, transparency logs, witnesses and authors of commits.
package publickey

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
)

// The accepted sizes of RSA keys, in bits. Smaller keys are insecure; larger ones make
// verification too expensive.
const (
	minRSA = 2048
	maxRSA = 8192
)

// Check returns an error if the type of a public key is not supported, or if the key is weak: anybody
// could sign for it, or it is another form of a key.
func Check(pub crypto.PublicKey) error {
	switch pub := pub.(type) {
	case ed25519.PublicKey:
		return checkEd25519(pub)
	case *ecdsa.PublicKey:
		return checkECDSA(pub)
	case *rsa.PublicKey:
		return checkRSA(pub)
	}
	return errors.New("unsupported key type (use Ed25519, ECDSA on P-256, P-384 or P-521, or RSA)")
}

func checkECDSA(pub *ecdsa.PublicKey) error {
	switch pub.Curve {
	case elliptic.P256(), elliptic.P384(), elliptic.P521():
		if _, err := pub.ECDH(); err != nil {
			return errors.New("the ECDSA key is not a point of its curve (create a new one)")
		}
		return nil
	}
	return errors.New("unsupported ECDSA curve (use P-256, P-384 or P-521)")
}

// checkRSA also refuses the exponent 1, with which every message is its own signature.
func checkRSA(pub *rsa.PublicKey) error {
	if pub.N == nil || pub.N.Sign() <= 0 {
		return errors.New("the RSA key has no modulus (create a new one)")
	}
	if bits := pub.N.BitLen(); bits < minRSA || bits > maxRSA {
		return fmt.Errorf("RSA keys of %d bits are not supported (use %d to %d bits)", bits, minRSA, maxRSA)
	}
	if pub.N.Bit(0) == 0 || pub.E < 3 || pub.E%2 == 0 {
		return errors.New("the modulus and the exponent of an RSA key are odd, and the exponent is 3 or more (create a " +
			"new key)")
	}
	return nil
}
