package identity

import (
	"crypto"
	"crypto/rand"
	"fmt"
)

// Sign signs a message with the algorithm that [Keyring.Verify] expects for the type of
// the key.
func Sign(key crypto.Signer, signing []byte) ([]byte, error) {
	public, err := publicKeyOf(key.Public())
	if err != nil {
		return nil, err
	}
	m := &message{text: signing}
	signed, hash := m.text, crypto.Hash(0) // Ed25519 does its own hashing
	switch public := public.(type) {
	case ecdsaKey:
		hash = public.hash
		signed = m.digest(hash)
	case rsaKey:
		hash = crypto.SHA256
		signed = m.digest(hash)
	}
	sig, err := key.Sign(rand.Reader, signed, hash)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return sig, nil
}
