package identity

import (
	"crypto"
	"crypto/rand"
	"fmt"
)

// Sign signs a message as [Keyring.Verify] expects it of the key's kind.
func Sign(key crypto.Signer, signing []byte) ([]byte, error) {
	public, err := publicKeyOf(key.Public())
	if err != nil {
		return nil, err
	}
	m := &message{text: signing}
	signed, hash := m.text, crypto.Hash(0) // Ed25519 hashes by itself
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
